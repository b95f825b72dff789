"""Densities of Stan, NumPyro and PyMC equal our densities of the same models and are differentiable
once. A stand-in has the interface of bridgestan; the packages themselves are used where
installed."""

import json
import sys
from pathlib import Path

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load, normal
from support.targets.exact_moments import school_moments
from support.targets.gradients import value_and_gradient
from support.targets.sampler_gate import sample_problem
from torch.autograd import grad
from torch.testing import assert_close

from components.datasets.posteriordb_densities.eight_schools import eight_schools
from components.errors import ConfigMismatchError, DataUnavailableError
from runner.execution.rng import Streams

FIXTURES = Path(__file__).parents[2] / "fixtures"
DATA = FIXTURES / "eight_schools.json"
ORDER = [8, 9, *range(8)]  # mu, tau, eta of θ = (eta, mu, log tau)
SCHOOLS = {
    "stan": {
        "program": str(FIXTURES / "eight_schools.stan"),
        "data": str(DATA),
        "compiler": "stanli",
    },
    "numpyro": {"function": "own_things:numpyro_schools", "data": str(DATA)},
    "pymc": {"function": "own_things:pymc_schools", "data": str(DATA)},
}
PACKAGE = {"stan": "stanli", "numpyro": "numpyro", "pymc": "pymc"}
REAL = [
    pytest.param("stan"),
    pytest.param("numpyro", marks=pytest.mark.slow),  # seconds to compile
    pytest.param("pymc", marks=pytest.mark.slow),
]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program for the stand-in of bridgestan."""
    monkeypatch.syspath_prepend(str(FIXTURES / "stand_in"))
    monkeypatch.delitem(sys.modules, "bridgestan", raising=False)
    file = tmp_path / "normal.stan"
    file.write_text("parameters { real mu; real<lower=0> tau; }\n")
    yield file
    sys.modules.pop("bridgestan", None)


def test_value_and_gradient_equal_the_package(program):
    target, _ = load("stan", program=str(program), derived=True)
    theta = double([[0.5, 0.0], [1.0, -1.0]])
    value, gradient = value_and_gradient(target.log_density, theta)
    mu, log_tau = theta.unbind(1)
    assert_close(value, -2 * mu**2 + log_tau - log_tau.exp())
    assert_close(gradient, torch.stack([-4 * mu, 1 - log_tau.exp()], 1))
    assert torch.equal(target.log_density(theta), value)  # without a gradient
    assert (target.names, target.dim) == (["mu", "tau", "both[1]", "both[2]"], 2)
    assert_close(target.constrain(theta)[:, 2], mu + log_tau.exp())


def test_float32_input_is_computed_in_float64(program):
    target, _ = load("stan", program=str(program), dtype=torch.float32)
    theta = torch.tensor([[0.1, 0.2]])
    value, gradient = value_and_gradient(target.log_density, theta)
    exact, _ = value_and_gradient(target.log_density, theta.double())
    assert (value.dtype, gradient.dtype) == (torch.float32, torch.float32)
    assert torch.equal(value, exact.float())
    assert target.constrain(theta).dtype == torch.float32


def test_second_derivative_is_refused_in_one_line(program):
    target, _ = load("stan", program=str(program))
    theta = torch.zeros(1, 2, dtype=F64, requires_grad=True)
    (slope,) = grad(target.log_density(theta).sum(), theta, create_graph=True)
    with pytest.raises(ConfigMismatchError, match=r"use a method .* only the gradient"):
        grad(slope.sum(), theta)


def test_rejected_point_has_density_zero(program):
    target, _ = load("stan", program=str(program))
    theta = double([[-6.0, 0.0], [0.0, 0.0]])
    value, gradient = value_and_gradient(target.log_density, theta)
    assert value.tolist() == [-torch.inf, -1.0]
    assert gradient[0].tolist() == [0.0, 0.0]
    with pytest.raises(ConfigMismatchError, match=r"any of 3 starts; set dataset\.start"):
        load("stan", program=str(program), start_mean=[-50.0, 0.0])


def test_nuts_reaches_the_exact_moments(program, tmp_path):
    data = tmp_path / "data.json"
    data.write_text('{"a": 2.0}')
    target, _ = load("stan", program=str(program), data=str(data), mean=[2.0, 1.0], sd=[0.5, 1.0])
    draws = sample_problem("hmc", target, 400, chains=4, warmup=100)
    scores = target.score(draws, Streams(0))
    assert scores["z_max"] < 4
    assert scores["error_mean"] < 0.2


def test_other_code_or_data_change_the_target(program, tmp_path):
    data = tmp_path / "data.json"

    def name(text, a):
        program.write_text(text)
        data.write_text(json.dumps({"a": a}))
        changed = component("dataset", "stan", program=str(program), data=str(data))
        return changed.identity(tmp_path, True)

    (tmp_path / "part.stan").write_text("real mu;")
    first = name("#include part.stan\n", 1.0)
    assert first.startswith("stan-normal-")
    (tmp_path / "part.stan").write_text("real nu;")
    others = {name("#include part.stan\n", 1.0), name("#include part.stan\n", 2.0), name("", 1.0)}
    assert len({first, *others}) == 4


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"data": "absent.json"}, "dataset.data=absent.json: the file does not exist here or in"),
        ({"data": "{folder}/text.json"}, "text.json: Expecting value.*; must be a JSON object"),
        (
            {"program": "{folder}/broken.stan"},
            "Syntax error in line 2; fix the program or its data .*; dataset.compiler=stanli",
        ),
        ({"program": "absent.stan"}, "dataset.program=absent.stan: the file does not exist"),
        ({"start_mean": [0.0] * 3}, "dataset.start_mean: 3 values, but .* has 2; give 2"),
        ({"mean": [0.0], "sd": [1.0]}, r"dataset.mean: 1 values, but .* has 2 \(mu, tau\); give 2"),
    ],
)
def test_invalid_keys_are_named(program, tmp_path, keys, message):
    (tmp_path / "text.json").write_text("mu = 1")
    (tmp_path / "broken.stan").write_text("syntax error")
    given = {k: v.format(folder=tmp_path) if isinstance(v, str) else v for k, v in keys.items()}
    with pytest.raises((ConfigMismatchError, DataUnavailableError), match=message) as error:
        load("stan", **{"program": str(program), **given})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["stan", "numpyro", "pymc"])
def test_missing_package_names_its_extra(name, monkeypatch):
    monkeypatch.setattr("components.errors.find_spec", lambda package: None)
    with pytest.raises(ConfigMismatchError, match=rf"pip install 'bayes-runner\[{name}\]'"):
        load(name, **SCHOOLS[name])


def test_hessian_method_names_its_requirement(program):
    target, rng = load("stan", program=str(program))
    fit = component("inference", "importance_sampling")
    with pytest.raises(
        ConfigMismatchError, match=r"does not provide second derivatives, .*; use a method"
    ):
        fit.init(component("model", "target_density").build(target, rng), target, rng)


def real(name, **keys):
    pytest.importorskip(PACKAGE[name], reason=f"{PACKAGE[name]} is not installed")
    return load(name, **SCHOOLS[name], derived=True, **keys)


def school_data():
    return json.loads(DATA.read_text())


@pytest.mark.parametrize("name", REAL)
def test_eight_schools_equals_ours_up_to_a_constant(name):
    """log π and ∇ log π of the package equal ours up to rounding."""
    target, _ = real(name)
    ours = eight_schools(school_data(), double([]))
    theta = normal(generator(1), 5, 10)
    value, gradient = value_and_gradient(target.log_density, theta[:, ORDER])
    our_value, our_gradient = value_and_gradient(ours.log_density, theta)
    constant = value - our_value
    assert torch.allclose(constant, constant[0].expand(5), rtol=0, atol=1e-12)
    assert torch.allclose(gradient, our_gradient[:, ORDER], rtol=1e-12, atol=1e-12)
    assert_close(target.constrain(theta[:, ORDER])[:, -8:], ours.constrain(theta)[:, :8])
    assert torch.allclose(target.log_density(theta[:, ORDER]), value, rtol=1e-13)
    first = "theta[1]" if name == "stan" else "theta[0]"
    assert target.names[10] == first


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stan", "numpyro", "pymc"])
def test_nuts_on_eight_schools_matches_quadrature(name):
    mean, second = school_moments(school_data())
    target, _ = real(name)
    posterior = sample_problem("nuts", target, 1300, chains=8, warmup=300, target_acceptance=0.9)
    estimate = posterior.mean[[*range(10, 18), 0, 1]]  # theta, mu, tau
    ess = torch.tensor(2000.0)
    sd = (second - mean.square()).sqrt()
    assert ((estimate - mean).abs() / (sd / ess.sqrt())).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "function", "arguments", "message"),
    [
        ("numpyro", "numpyro_counts", {"observed": 1}, "add one with a prior"),
        ("numpyro", "numpyro_counts", {}, "(has a discrete|no continuous) parameter; (sum it|add)"),
        ("numpyro", "numpyro_schools", {}, r"'sigma' \(.*; fix it there, or its data \(dataset"),
        (
            "numpyro",
            "numpyro_schools",
            {"y": [0, 1], "sigma": [1, None]},
            "null; give only numbers",
        ),
        ("pymc", "pymc_counts", {"observed": 1}, "add one with a prior"),
        ("pymc", "pymc_counts", {}, "n is discrete; gradients need continuous"),
        (
            "pymc",
            "pymc_schools",
            {"y": [0, 1], "sigma": [1] * 3},
            r"it there, or its data \(dataset",
        ),
        ("pymc", "nowhere", {"theta": [[0]]}, r"returns ndarray, but must return a pymc\.Model"),
    ],
)
def test_model_or_data_that_do_not_fit_are_refused(name, function, arguments, message):
    pytest.importorskip(name)
    with pytest.raises(ConfigMismatchError, match=message):
        load(name, function=f"own_things:{function}", arguments=arguments)
