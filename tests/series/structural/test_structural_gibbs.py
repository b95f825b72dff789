"""The Gibbs sampler of structural series: compiled sweeps equal a reference, and resumed runs end
in the same state."""

from dataclasses import is_dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import component, double, generator
from support.series.structural_series import block, model, problem
from support.small.small_problems import advance, check_resumed
from support.targets.reference_sweep import Reference

from components.errors import NumericalError
from components.posteriors.inference_data import write
from components.series.structural.sweep import Sweep
from runner.execution.rng import Streams

REGRESSION = block("regression", expected_size=1.0)
MODELS = {
    "level and regression": (["local_level", REGRESSION], {}),
    "trend and seasons": (["local_linear_trend", block("seasonal", period=4)], {}),
    "regression alone": ([REGRESSION], {}),
    "rows that change": (["local_level", "dynamic_regression"], {}),
    "autoregression and returning slope": (
        [block("autoregressive", lags=2), "semilocal_trend"],
        {},
    ),
    "goodwill": (["local_level", "nerlove_arrow", REGRESSION], {}),
    "goodwill, errors of Student's t": (["nerlove_arrow", REGRESSION], {"errors": "student_t"}),
    "errors of Student's t, ν known": (
        ["local_level", REGRESSION],
        {"errors": "student_t", "nu": 4.0},
    ),
    "koyck": (["local_level", "koyck"], {}),
    "goodwill, no selection": (
        [block("nerlove_arrow", expected_size=None), block("regression", expected_size=None)],
        {},
    ),
}


def setup(name, **keys):
    parts, changes = MODELS[name]
    data = problem(missing=(3, 8))
    rng = Streams(1)
    gibbs = component(
        "inference", "structural_gibbs", **({"burn_in": 2, "thinning": 2, "chains": 3} | keys)
    )
    return data, rng, gibbs, gibbs.init(model(*parts, of=data, **changes), data, rng)


def one_of(numbers, index):
    """The same tuple with each array indexed."""
    if isinstance(numbers, tuple):
        return type(numbers)(*(one_of(x, index) for x in numbers))
    return (
        type(numbers)(**{key: x[index] for key, x in vars(numbers).items()})
        if is_dataclass(numbers)
        else numbers[index]
    )


def go(data, rng, gibbs, state, start, stop):
    return advance(gibbs, state, data, rng, start, stop)[0]


def test_joint_sweeps_equal_single_ones():
    _data, _, _, state = setup("goodwill")
    sweeps = state.sweeps
    g = generator()
    drawn = sweeps.numbers(6, 3, g)
    whole, alpha, kept = sweeps.advance(state.place, drawn)
    place = state.place
    for k in range(6):
        place, states, theta = sweeps.advance(place, one_of(drawn, slice(k, k + 1)))
        assert torch.equal(theta[0], kept[k])
    assert torch.equal(states, alpha)
    assert torch.equal(place.gamma, whole.gamma)


@pytest.mark.parametrize("name", MODELS)
def test_sweep_equals_the_reference(name):
    """Three chains after learning their directions, continued with the same random numbers."""
    data, rng, gibbs, state = setup(name, burn_in=120)
    place = go(data, rng, gibbs, state, 0, 121).place
    assert place.earlier.shape[1] > 10
    drawn = state.sweeps.numbers(1, 3, generator())
    new, alpha, _ = state.sweeps.advance(place, drawn)
    for c in range(3):
        chain = Reference(
            state.model.structure,
            state.sweeps.design,
            one_of(place, c),
            state.sweeps.model.is_marginal,
        )
        chain.sweep(one_of(drawn, (0, c)))
        for key in ("sigma", "phi", "gamma", "beta", "nu", "precisions"):
            value = vars(new)[key][c].numpy()
            expected = np.asarray(vars(chain)[key])
            assert np.allclose(value, expected, rtol=1e-6, atol=1e-6), key
        assert np.allclose(alpha[c].numpy(), chain.alpha, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("level and regression", 45),
        ("goodwill, errors of Student's t", 65),
        ("trend and seasons", 45),
        ("trend and seasons", 65),
    ],
)
def test_stopped_chain_resumes_bit_identically(name, stop, tmp_path):
    """Before and after the last directions are learned."""
    data, _, gibbs, _ = setup(name, burn_in=60)
    parts, changes = MODELS[name]
    built = SimpleNamespace(build=lambda data, rng: model(*parts, of=data, **changes))
    check_resumed(gibbs, built, data, tmp_path, 70, stop)


def test_contributions_of_blocks_leave_only_noise():
    """Components of a kept draw, states and columns by block; the residual has the size of the
    observations' σ."""
    data, rng, gibbs, state = setup("goodwill", burn_in=50, thinning=1)
    posterior = gibbs.posterior(go(data, rng, gibbs, state, 0, 250))
    assert posterior.contributions.shape == (3, 200, 24, 3)
    is_observed = ~data.observations[0, :, 0].isnan()
    residuals = (data.observations[0, :, 0] - posterior.contributions.sum(-1))[..., is_observed]
    sigma = posterior.draws[..., 0]
    assert (residuals.square().mean(-1).sqrt() / sigma).mean() == pytest.approx(1.0, abs=0.15)
    assert posterior.labels == ["level", "goodwill", "regression"]


def test_draws_open_in_arviz(tmp_path):
    """Every parameter is a variable of chains and draws under its own name."""
    xarray = pytest.importorskip("xarray")
    data, rng, gibbs, state = setup("goodwill", thinning=1)
    posterior = gibbs.posterior(go(data, rng, gibbs, state, 0, 12))
    (path,) = write(posterior, tmp_path)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        group = tree["posterior"]
        assert list(group.data_vars) == posterior.names
        assert {name: tuple(group[name].dims) for name in posterior.names} == dict.fromkeys(
            posterior.names, ("chain", "draw")
        )
        assert dict(group.sizes) == {"chain": 3, "draw": 10}
        for j, name in enumerate(posterior.names):
            assert (group[name].values == posterior.draws[..., j].numpy()).all()


def test_chains_start_apart_within_their_limits():
    _, _, _, state = setup("trend and seasons", chains=50)
    assert torch.equal(state.begun[:, :4], state.place.sigma)
    limits = double([scale.upper for scale in state.model.structure.scales])
    assert (state.begun[:, :4] <= limits).all()
    assert state.begun[:, 1].log().std() == pytest.approx(1.0, abs=0.3)


def test_certain_columns_are_always_included():
    data = problem()
    rng = Streams(0)
    parts = ["local_level", block("regression", inclusion={"a": 1.0, "b": 0.0}, expected_size=None)]
    gibbs = component("inference", "structural_gibbs", burn_in=1, chains=2)
    state = go(data, rng, gibbs, gibbs.init(model(*parts, of=data), data, rng), 0, 20)
    posterior = gibbs.posterior(state)
    assert (posterior.draws[..., 2] != 0).all()
    assert not (posterior.draws[..., 3] != 0).any()


def test_non_finite_values_raise_an_error(monkeypatch):
    data, rng, gibbs, state = setup("level and regression")
    wrong = (vars(state.place) | {"sigma": state.place.sigma * torch.nan}).values()
    monkeypatch.setattr(
        Sweep, "sweep", lambda self, place, generator, states: (type(place)(*wrong), None)
    )
    with pytest.raises(NumericalError, match=r"change the priors of model\.blocks"):
        go(data, rng, gibbs, state, 0, 1)
