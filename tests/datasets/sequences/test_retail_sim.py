"""Simulated sales of a chain with advertising: equations, available data, and errors."""

import pytest
import torch
from support.runs.configured import generator, load
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.series.forecast_data.retail_world import CHANNELS, REGRESSORS, RetailWorld

ALL = list(CHANNELS)


def test_simulation_follows_equations_as_printed():
    """Equations (1.4) and (1.5) week by week with hardly any noise; β and q of all columns,
    including two hidden channels."""
    q = dict(zip(ALL, (1.0, 0.5, -0.2, 3.0, 2.0, 4.0, 1.5), strict=True))
    beta = dict(zip(REGRESSORS, (2.0, -10.0, 0.8, 0.1, 0.2, -0.3, 0.4), strict=True))
    problem, _ = load(
        "retail_sim",
        q=q,
        effects=beta,
        decay=0.3,
        goodwill_sd=0.0,
        level_sd=0.0,
        observation_sd=1e-9,
        channels=ALL,
    )
    X = torch.cat([problem.regressors, problem.beyond.x])
    U = torch.cat([problem.inputs, problem.beyond.u])
    y = torch.cat([problem.observations, problem.future], 1)[0, :, 0]
    A = sum(q[name] * float(U[:, i].mean()) for i, name in enumerate(ALL)) / 0.3
    for t in range(234):
        if t > 0:
            A = (1 - 0.3) * A + sum(q[name] * float(U[t - 1, i]) for i, name in enumerate(ALL))
        expected = A + 168.0 + sum(beta[name] * float(X[t, j]) for j, name in enumerate(REGRESSORS))
        assert float(y[t]) == pytest.approx(expected, abs=1e-6)


def test_series_has_inputs_and_a_calendar():
    problem, _ = load("retail_sim")
    assert problem.observations.shape == (1, 104, 1)
    assert problem.future.shape == (1, 130, 1)
    assert problem.input_names == ["OOH", "TV", "ONLINE", "SEARCH", "RADIO"]
    assert problem.regressor_names == list(REGRESSORS)
    assert problem.inputs.shape == (104, 5)
    assert problem.beyond.u.shape == (130, 5)
    assert problem.beyond.x.shape == (130, 7)
    assert (problem.dates[0], problem.dates[103], problem.dates[-1]) == (
        "2011-01-03",
        "2012-12-24",
        "2015-06-22",
    )
    assert problem.inputs.min() >= 0
    idle = {name for name, value in problem.system.coefficients.items() if value == 0}
    assert idle == {"AVG_Rain", "Unemp_IX", "Price_IX", "CC_IX", "TV", "RADIO"}
    days = dict(zip(problem.dates, problem.regressors[:, 0].tolist(), strict=False))
    assert days["2011-12-26"] == days["2011-08-01"] == 7  # Christmas, August
    assert days["2011-04-18"] == 7  # the week that ends with Easter Sunday, 24 April


def test_missing_weeks_change_no_other_value():
    problem, _ = load("retail_sim")
    gone, _ = load("retail_sim", missing_share=0.3)
    assert gone.missing.sum() == 31
    assert not bool(gone.missing[0, 0])
    assert torch.equal(gone.observations[~gone.missing], problem.observations[~gone.missing])
    assert torch.equal(gone.future, problem.future)
    assert torch.equal(gone.regressors, problem.regressors)


@pytest.mark.parametrize("nu", [None, 4.0])
def test_noises_have_their_variances(nu):
    problem, _ = load(
        "retail_sim", n_steps=2500, n_train=2499, nu=nu, goodwill_sd=0.0, level_sd=0.0
    )
    noise = (problem.observations - problem.means)[0, :, 0]
    assert noise.var() == pytest.approx(25.0, rel=0.08 if nu is None else 0.25)
    kurtosis = float((noise**4).mean() / noise.var() ** 2)
    assert kurtosis > 4.5 if nu else kurtosis == pytest.approx(3.0, abs=0.2)


def test_spending_effects_follow_the_recursion():
    problem, _ = load("retail_sim", decay=0.4)
    effect = problem.system.effect(4)
    for j in range(4):
        for i, name in enumerate(problem.input_names):
            A = 0.0
            path = []
            for t in range(4):  # A_{t+1} from u_t
                A = (1 - 0.4) * A + (problem.system.coefficients[name] if t == j else 0.0)
                path.append(A)
            assert_close(effect[:, j, i].tolist(), path)


def test_campaigns_fill_their_share_of_the_weeks():
    world = RetailWorld(20_000, generator(0))
    spends = world.bursts(2.0, 0.3)
    assert (spends > 0).double().mean() == pytest.approx(0.3, abs=0.02)
    assert spends.mean() == pytest.approx(2.0, rel=0.07)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"q": {"tv": 1.0}}, "dataset.q: tv is not among OOH"),
        ({"effects": {"Rain": 1.0}}, "dataset.effects: Rain is not among Hols, Sport_EV"),
    ],
)
def test_invalid_settings_are_refused(keys, message):
    with pytest.raises(ConfigMismatchError, match=message):
        load("retail_sim", **keys)
