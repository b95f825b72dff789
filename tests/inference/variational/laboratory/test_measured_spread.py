"""Spread, bias and time of estimators with known variance."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy.stats import norm, ttest_1samp
from support.runs.configured import component, generator, normal
from support.small.small_bernoulli import binary_rows, small_dvae
from support.targets.known_targets import F64
from torch import nn

from components.contracts.costs.meters import metered
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import SeparateStreams
from components.inference.variational.laboratory.row_scores import add_costs
from components.inference.variational.laboratory.spread import (
    MeasuredEstimator,
    Over,
    measure_spread,
    spread_over_batches,
    time_ratios,
)
from runner.execution.rng import Streams


class Vector(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.zeros(3, dtype=F64))


class Known(Gradient):
    """ĝ/N = mean of the rows + offset + sd · noise; counts its calls of ``learn``."""

    requires = Requirements(capabilities=frozenset())
    unbiased: ClassVar[bool] = True
    sd: float
    offset: float

    def init(self, module, rng):
        return [0]

    def estimate(self, module, batch, rng, state):
        state[0] += 1
        noise = normal(rng.noise, 3)
        g = batch.x.mean(0) + self.offset + self.sd * noise
        return [g * batch.scale * batch.n_rows], {"elbo": g.sum()}, state


def known_estimator(sd=1.0, offset=0.0):
    return MeasuredEstimator("known", Known(name="known", sd=sd, offset=offset), [0], Streams(0))


def streams(n):
    return [Streams(seed) for seed in range(n)]


def rows(m, seed=0, sd=1.0):
    x = 2 + sd * normal(generator(seed), m, 4, 3)
    return [Rows(batch, 5.0) for batch in x]


def test_moments_of_estimates_match_numpy():
    g = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4]
    spread = measure_spread(torch.from_numpy(row) for row in g)
    assert np.allclose(spread.mean, g.mean(0))
    assert np.allclose(spread.variance, g.var(0, ddof=1))
    expected = np.trace(np.cov(g.T)), np.linalg.norm(g, axis=1).var(ddof=1)
    assert (spread.trace, spread.norm_variance) == pytest.approx(expected)


def test_times_are_compared_within_a_round():
    """The ratio does not change if the machine is ten times slower after the first round."""
    assert time_ratios([[1.0, 10.0, 10.0], [3.0, 30.0, 30.0]]) == [1.0, 3.0]


def test_learnt_state_is_fixed_during_measurement():
    estimator = known_estimator()
    estimator.estimate(Vector(), rows(1)[0], Streams(1), [True])
    assert estimator.state == [0]
    estimator.learn(Vector(), rows(1)[0])
    assert estimator.state == [1]


def test_minibatch_share_and_bias_match_known_values():
    """For rows N(0, 1), four per batch, the variance of their mean is 1/4 per component, and that
    of the noise is sd²."""
    watched = [known_estimator(0.5), known_estimator(1.0), known_estimator(0.5, offset=0.2)]
    calm, noisy, biased = spread_over_batches(watched, Vector(), rows(2_000), streams(3), [True])
    shares = [0.25 / (0.25 + 0.25), 0.25 / (0.25 + 1.0)]
    assert [calm.minibatch_share, noisy.minibatch_share] == pytest.approx(shares, abs=0.03)
    assert noisy.bias_p > 0.01
    assert abs(noisy.bias) < 4 * 1.25 * 3 / 2_000**0.5
    assert biased.bias_p < 1e-3
    assert biased.bias == pytest.approx(3 * 0.2**2, rel=0.5)


def test_bias_test_matches_scipy():
    watched = [known_estimator(0.5), known_estimator(0.5, offset=0.5), known_estimator(0.5)]
    spread = spread_over_batches(watched, Vector(), rows(40), streams(3), [True])
    # two draws of a batch; the rows are the same in both estimators
    plain, other = (
        torch.stack([normal(rng.noise, 3) for _ in range(80)]).view(40, 2, 3).mean(1)
        for rng in streams(2)
    )
    groups = (0.5 * (other - plain) + 0.5).view(10, 4, 3)
    products = groups @ groups.mT
    means = (products.sum((1, 2)) - products.diagonal(dim1=1, dim2=2).sum(1)) / 12
    test = ttest_1samp(means.numpy(), 0.0, alternative="greater")
    assert spread[1].bias == pytest.approx(float(means.mean()))
    assert spread[1].bias_p == pytest.approx(test.pvalue)
    assert spread[1].bias_z == pytest.approx(norm.isf(test.pvalue))
    assert spread[1].bias_z > 3
    assert 0 <= spread[2].bias_z < 3
    assert spread[0].bias_z == 0


def test_total_variance_matches_single_estimates():
    (spread,) = spread_over_batches(
        [known_estimator(0.5)], Vector(), rows(4_000), [Streams(0)], [True]
    )
    assert spread.total == pytest.approx(3 * (0.25 + 0.25), rel=0.05)


def test_passes_match_hand_count():
    """The log joint of each row is evaluated once per draw and pair member, and differentiated by
    the parameters of p: forward 1, backward 2; other evaluations of DisARM are forward only."""
    problem = binary_rows()
    model = metered(small_dvae(problem))
    batch = problem.train
    every = [True] * len(list(model.parameters()))

    def passes(name, **keys):
        estimator = component("gradient", name, **keys)
        watched = MeasuredEstimator(name, estimator, estimator.init(model, Streams(0)), Streams(0))
        return watched.count_passes(model, batch, Streams(0), every)

    n = batch.n_rows
    assert passes("vargrad", n_samples=4) == 4 * n + 2 * 4 * n
    assert passes("reinforce", n_samples=1) == 3 * n
    assert passes("vargrad", n_samples=8) == 2 * passes("vargrad", n_samples=4)


def test_variance_times_cost_is_relative_to_first():
    values = {"plain": {"trace_ratio": 1.0}, "two": {"trace_ratio": 0.25}}
    overs = [Over(2.0, 0.5, 0.0, 1.0, 0.0), Over(1.0, 0.5, 0.0, 1.0, 0.0)]
    add_costs(values, [[0.001, 0.003], [0.002, 0.006]], overs, [30.0, 90.0])
    assert (values["plain"]["milliseconds"], values["plain"]["variance_seconds"]) == (2.0, 1.0)
    assert values["two"]["variance_seconds"] == pytest.approx(0.5)
    totals = [
        entry[name] for entry in values.values() for name in ("total_passes", "total_seconds")
    ]
    assert totals == pytest.approx([1, 1, 0.5 * 3, 0.5 * 2])


def test_laboratory_has_own_streams():
    rng = Streams(0)
    besides = SeparateStreams(rng, 10**7)
    noise_state = rng.noise.get_state()
    torch.randn(3, generator=besides.noise)
    assert torch.equal(noise_state, rng.noise.get_state())
