"""Blocks of structural models, compared state by state with literal transitions."""

import math

import pytest
import torch
from support.runs.configured import double, draw_normal
from support.series.structural_series import F64, block
from torch.testing import assert_close

from components.contracts.structural import Covariates, Facts

Y = torch.arange(20, dtype=F64) + 3
X = draw_normal(20, 2)


def terms(name, **changes):
    facts = Facts(Covariates(Y, X, X.abs()), 2.0, 3.0, ["a", "b"], ["tv", "web"], "model.blocks.0")
    return block(name, **changes).terms(facts)


def advance_state(made, state, phi=()):
    """G(φ) times a state."""
    G = made.G.clone()
    values = list(phi)
    for moves in made.transitions:
        for row in moves.terms:
            G[moves.row] += values.pop(0) * row
    return G @ double(state)


def test_trends_match_transition():
    assert advance_state(terms("local_level"), [5.0]).tolist() == [5.0]
    assert advance_state(terms("local_linear_trend"), [5.0, 2.0]).tolist() == [7.0, 2.0]


def test_semilocal_slope_returns_to_its_mean():
    block = terms("semilocal_trend")
    mu = 5.0
    slope = 2.0
    D = 0.5
    phi = 0.25

    assert advance_state(block, [mu, slope, D], [phi]).tolist() == [
        mu + slope,
        D + phi * (slope - D),
        D,
    ]
    assert block.transitions[0].within == (-1.0, 1.0)


def test_seasonal_effects_sum_to_zero():
    block = terms("seasonal", period=4)
    state = [3.0, -1.0, 0.5]

    updated = advance_state(block, state)

    assert updated.tolist() == [-2.5, 3.0, -1.0]
    assert block.scales[0].states == (0,)


@pytest.mark.parametrize("period", [6.5, 6.0])
def test_waves_repeat_after_a_period(period):
    """For a whole period p, harmonic j repeats after p/j."""
    block = terms("trigonometric", period=period, harmonics=3)
    times = round(2 * period)  # 13 or 12: integer in both cases
    state = draw_normal(len(block.states), seed=1)

    assert_close(torch.linalg.matrix_power(block.G, times) @ state, state)
    # the last wave of an even period has no sine
    assert len(block.states) == (5 if period == 6.0 else 6)
    w = 2 * math.pi / period
    assert_close(
        advance_state(block, [1.0, *[0.0] * (len(block.states) - 1)])[:2].tolist(),
        [math.cos(w), -math.sin(w)],
    )


def test_autoregression_shifts_its_lags():
    assert advance_state(
        terms("autoregressive", lags=3), [1.0, 2.0, 4.0], [0.5, 0.25, -1.0]
    ).tolist() == [
        -3.0,
        1.0,
        2.0,
    ]


def test_dynamic_regression_reads_standardised_regressors():
    rows = terms("dynamic_regression").rows(Covariates(Y, X))

    assert_close(rows.mean(0), torch.zeros(2, dtype=F64))
    assert_close(rows.std(0, correction=0), torch.ones(2, dtype=F64))


def test_goodwill_decays_by_its_share():
    block = terms("nerlove_arrow", inputs=["web"], inclusion={"web": 0.25})

    assert advance_state(block, [8.0], [0.75]).tolist() == [6.0]
    assert block.regressors.names == ("web",)
    assert block.regressors.inclusion.tolist() == [0.25]
    assert block.regressors.fades == (0, 0)
    u = X.abs()[:, 1:]
    assert_close(block.regressors.precision, 0.01 * u.T @ u / 20)
