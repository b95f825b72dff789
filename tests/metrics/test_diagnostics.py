"""Diagnostics against an independent computation and against chains of known autocorrelation."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from arviz_stats.base import array_stats
from support.runs.configured import F64, double, generator, normal, uniform
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.errors import IncompleteResultWarning
from components.metrics.diagnostics import (
    bulk_ess,
    convergence,
    e_bfmi,
    mcse_mean,
    nested_rhat,
    resting,
    split_rhat,
    tail_ess,
    worst_coordinate_value,
)
from components.metrics.importance_weights import FEWEST_WEIGHTS, pareto_k, weight_ess
from components.posteriors.draws import Draws


def autoregression(rho, chains, draws, dims, seed=0):
    """Stationary Gaussian AR(1) chains of unit variance, [C, N, P]."""
    g = generator(seed)
    noise = normal(g, draws, chains, dims)
    x = noise[0]
    out = []
    for z in noise:
        x = rho * x + (1 - rho**2) ** 0.5 * z
        out.append(x)
    return torch.stack(out, 1)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.5])
def test_ess_of_an_autoregression_is_exact(rho):
    x = autoregression(rho, chains=4, draws=4000, dims=20)
    exact = 16_000 * (1 - rho) / (1 + rho)
    # Averaged over 20 independent coordinates; negative correlations are truncated late by Geyer's
    # rule.
    assert bulk_ess(x).mean() == pytest.approx(exact, rel=0.07)


IDS = np.repeat(range(3), 2)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (tail_ess, partial(array_stats.ess, method="tail", prob=(0.05, 0.95))),
        (split_rhat, partial(array_stats.rhat, method="rank")),
        (mcse_mean, partial(array_stats.mcse, method="mean")),
        (
            partial(nested_rhat, superchains=3),
            partial(array_stats.rhat_nested, superchain_ids=IDS, method="rank"),
        ),
    ],
)
def test_each_coordinate_has_the_statistic_of_arviz(ours, theirs):
    x = autoregression(0.6, chains=6, draws=50, dims=3, seed=3)
    x[0] += torch.tensor([0.0, 1.0, 0.0])  # a shifted chain
    x[1, :, 2] *= 4  # a chain of another scale, which only the folded R̂ detects
    exact = [float(theirs(x[..., j].numpy(), chain_axis=0, draw_axis=1)) for j in range(3)]
    assert ours(x).tolist() == pytest.approx(exact, rel=1e-10)


def test_rhat_separates_agreeing_and_disagreeing_chains():
    x = autoregression(0.0, chains=4, draws=1000, dims=1)
    assert abs(float(split_rhat(x)) - 1) < 0.01
    apart = x + torch.arange(4).view(4, 1, 1) * 5.0
    assert float(split_rhat(apart)) > 2
    assert float(bulk_ess(apart)) < 10


def test_constant_coordinate_has_no_ess_and_stuck_chain_no_rhat():
    x = autoregression(0.0, chains=4, draws=100, dims=3)
    x[:, :, 1] = 2.0  # no chain moved
    x[:, :, 2] = x[:, :1, 2]  # every chain stays at its start
    assert bulk_ess(x)[1].isnan()
    assert tail_ess(x)[1].isnan()
    assert mcse_mean(x)[1].isnan()
    assert bulk_ess(x)[2] < 10
    assert split_rhat(x)[2] > 1e6  # infinite, except for the rounding of a mean of equal numbers


def test_scores_cover_moving_coordinates_and_stuck_chains():
    x = autoregression(0.0, chains=4, draws=200, dims=3)
    moving, _ = convergence(Draws(x[:, :, [0, 2]], x[:, 0, [0, 2]]))
    x[:, :, 1] = 0.0  # a point mass: a constant coordinate
    assert resting(x).tolist() == [False, True, False]
    scores, each = convergence(Draws(x, x[:, 0], ["a", "b", "c"]))
    assert {name: scores[name] for name in ("rhat", "ess", "ess_tail")} == moving
    assert each["rhat"][1].isnan()
    x[:, :, 1] = torch.arange(4.0)[:, None]  # each chain is constant, at a different value
    assert not resting(x).any()
    stuck, _ = convergence(Draws(x, x[:, 0], ["a", "b", "c"]))
    assert stuck["rhat"] > 1e6
    assert stuck["ess"] < 10
    nowhere, _ = convergence(Draws(torch.zeros(4, 50, 2), torch.zeros(4, 2)))
    assert all(math.isnan(nowhere[name]) for name in ("rhat", "ess", "ess_tail"))


def test_worst_replicate_ignores_constants_but_not_nan():
    each = torch.tensor(
        [[1.5, math.nan, 1.2], [math.nan, math.nan, math.nan], [1.1, math.nan, 3.0]]
    )
    rests = torch.tensor([[False, True, False], [True, True, True], [False, False, False]])
    assert worst_coordinate_value(each, rests, largest=True)[0] == 1.5
    assert worst_coordinate_value(each, rests, largest=False)[0] == pytest.approx(1.2)
    # no chain moves; and one value is missing
    assert worst_coordinate_value(each, rests, largest=True)[1:].isnan().all()


def test_e_bfmi_equals_its_formula():
    g = generator(2)
    energy = normal(g, 3, 50).cumsum(1)
    deviations = energy - energy.mean(1, keepdim=True)
    literal = energy.diff().square().sum(1) / deviations.square().sum(1)
    assert_close(e_bfmi(energy), literal, rtol=1e-12, atol=0)
    independent = normal(g, 2, 20_000)
    assert e_bfmi(independent).tolist() == pytest.approx([2.0, 2.0], rel=0.03)


def test_weight_ess_equals_its_formula():
    log_w = double([[0.0, -1.0], [2.0, -torch.inf]])
    w = log_w.exp()
    assert weight_ess(log_w + 700) == pytest.approx(float(w.sum() ** 2 / (w**2).sum()), rel=1e-12)
    assert weight_ess(torch.zeros(5, 20)) == pytest.approx(100)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_pareto_k_of_pareto_weights_is_recovered(k):
    g = generator(4)
    u = uniform(g, 40, 10_000)
    log_w = -k * u.log()  # P(w > v) = v^(−1/k)
    # 300 tail weights, and a prior at ½ with the weight of ten
    expected = (300 * k + 10 * 0.5) / 310

    def z(values):
        return abs(z_score(torch.tensor([pareto_k(row) for row in values]), expected))

    assert z(log_w) < 4
    assert z(log_w.log()) > 4  # the mutant fits log w: k is 0
    assert pareto_k(torch.zeros(100)) == -math.inf


def sample(n, chains=4, **more):
    x = autoregression(0.0, chains, n, dims=3)
    return Draws(x, x[:, 0], ["a", "b", "c"], **more)


def test_sampler_statistics_are_summarised():
    stats = {
        "diverging": torch.zeros(4, 100, dtype=torch.bool),
        "acceptance_rate": torch.full((4, 100), 0.7),
        "energy": autoregression(0.5, 4, 100, 1)[..., 0],
    }
    stats["diverging"][1, 3] = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        worst, each = convergence(sample(100, stats=stats))
    assert list(worst) == ["ess", "ess_tail", "rhat", "divergences", "acceptance", "e_bfmi"]
    assert worst["divergences"] == 1
    assert worst["acceptance"] == pytest.approx(0.7)
    assert worst["ess"] == each["ess"].min()
    assert worst["rhat"] == each["rhat"].max()
    assert {len(v) for v in each.values()} == {3}


@pytest.mark.parametrize("n", [1, 3])
def test_too_few_draws_are_reported_without_scores(n):
    stats = {"diverging": torch.ones(4, n, dtype=torch.bool), "energy": torch.ones(4, n)}
    wanted = (
        f"ess, ess_tail, rhat, e_bfmi: {n} draws per chain are too few, 4 required; raise steps"
    )
    with pytest.warns(IncompleteResultWarning, match=wanted):
        worst, each = convergence(sample(n, stats=stats))
    assert (worst, each) == ({"divergences": 4.0 * n}, {})


def test_single_chain_has_no_rhat():
    with pytest.warns(
        IncompleteResultWarning,
        match="rhat: 1 chain .*; raise inference.chains",
    ):
        worst, _ = convergence(sample(50, chains=1))
    assert list(worst) == ["ess", "ess_tail"]
    assert convergence(sample(50).__class__(torch.zeros(4, 0, 3), torch.zeros(4, 3))) == ({}, {})


def test_weighted_draws_have_their_own_diagnostics():
    worst, _ = convergence(sample(100, log_weights=torch.randn(4, 100, dtype=F64)))
    assert list(worst) == ["weight_ess", "log_relative_variance", "pareto_k"]
    with pytest.warns(
        IncompleteResultWarning,
        match=f"pareto_k: 8 weights .* {FEWEST_WEIGHTS} required; take more draws",
    ):
        few, _ = convergence(sample(2, log_weights=torch.zeros(4, 2)))
    assert list(few) == ["weight_ess", "log_relative_variance"]
