"""A function as a target: Jacobians, name, scores with and without a reference, and errors."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from support.runs.configured import F64, component, double, load, made_job
from support.small.small_problems import advance
from support.targets.sampler_gate import sample_problem

from components.errors import ConfigMismatchError
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams


def problem(function="log_density", dim=2, **keys):
    return load("log_density", function=f"own_things:{function}", dim=dim, **keys)[0]


def test_density_with_jacobians_integrates_to_one_over_theta():
    """∫∫ π(p(θ₁), s(θ₂)) |J| dθ = 1 by the trapezium rule on a grid."""
    target = problem("beta_and_exponential", support=["unit", "positive"])
    grid = torch.linspace(-18, 8, 1200, dtype=F64)
    theta = torch.cartesian_prod(grid, grid)
    mass = target.log_density(theta).exp().sum() * (grid[1] - grid[0]) ** 2
    assert float(mass) == pytest.approx(1, abs=1e-6)
    x = target.constrain(theta)
    w = target.log_density(theta).exp() * (grid[1] - grid[0]) ** 2
    assert torch.allclose(w @ x, double([0.75, 1.0]), atol=1e-5)


def test_estimated_moments_have_standard_errors():
    target = problem(mean=[1.0, 0.0], sd=[2.0, 1.0], ess=100.0)
    assert torch.allclose(target.mean_error, double([0.2, 0.1]))
    assert torch.allclose(target.second_moment_error, double([0.48**0.5, 0.02**0.5]))
    assert problem(mean=[1.0, 0.0], sd=[2.0, 1.0]).mean_error is None


def test_real_parameter_equals_theta():
    target = problem(arguments={"sd": 2.0})
    assert target.constrain is None
    theta = torch.randn(5, 2, dtype=F64)
    assert torch.equal(target.log_density(theta), -0.5 * (theta / 2).square().sum(1))


def draws(target, chains=2, steps=100):
    return sample_problem("hmc", target, steps, chains=chains, warmup=40)


def test_known_moments_are_scored_and_others_left_out():
    gaussian = problem(mean=[0.0, 0.0], sd=[1.0, 1.0])
    unknown = problem()
    posterior = draws(gaussian)
    scores = gaussian.score(posterior, Streams(0))
    fewer = unknown.score(posterior, Streams(0))
    assert scores["z_max"] < 4
    assert {"error_mean", "error_mean/x1", "z_max"} <= scores.keys()
    assert fewer == {name: value for name, value in scores.items() if name in fewer}
    left_out = {name.partition("/")[0] for name in scores.keys() - fewer.keys()}
    assert left_out == {
        "error_mean",
        "error_second_moment",
        "error_mean_of_a_chain",
        "z_max",
        "error_sd",
        "error_mean_sd",
        "b2",
        "b2_max",
        "b2_mean",
    }
    assert "trace" in unknown.draw(posterior, Streams(0))


def test_other_code_changes_the_target(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "a_target_of_a_test.py"
    names = []
    for sign in ("-", "-0.5 * "):
        file.write_text(f"def f(theta):\n    return {sign}theta.square().sum(1)\n")
        sys.modules.pop(file.stem, None)
        importlib.invalidate_caches()
        names.append(
            component("dataset", "log_density", function=f"{file.stem}:f", dim=1).identity(
                Path(), True
            )
        )
    assert names[0] != names[1]
    assert all(name.startswith("log_density-a_target_of_a_test.f-") for name in names)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "of_each_coordinate",
            r"returns \[3, 2\] for theta \[3, 2\], but must return one number per row, \[3\]; use .sum\(1\)",
        ),
        ("of_all_rows", r"depends on other rows; sum only over the last dimension"),
        ("fails", r"RuntimeError: .*own_things.py, line \d+\); fix it there"),
        ("nowhere", r"not finite at any of 3 starts; set dataset.start_mean"),
        ("nothing", r"own_things has no function or class nothing; it has "),
        ("log_densit", r"own_things has no function or class log_densit"),
    ],
)
def test_invalid_functions_are_refused(function, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        problem(function)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "inference", ["nuts", "sgld", "svgd", "full_rank_vi", "vis", "random_walk_mh"]
)
def test_samplers_and_fits_accept_user_densities(inference, tmp_path):
    job = made_job(
        tmp_path,
        "dataset=log_density",
        "dataset.function=own_things:log_density",
        "dataset.dim=2",
        "plugins=[own_things]",
        "model=target_density",
        f"inference={inference}",
        "steps=9000",
    )
    target = load_problem(job, Streams(0))
    rng = Streams(0)
    state = job.inference.init(job.model.build(target, rng), target, rng)
    assert advance(job.inference, state, target, rng, 0, 2)[1]
