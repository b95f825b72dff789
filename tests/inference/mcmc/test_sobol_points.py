"""Importance sampling from Sobol points: each draw is distributed as q, errors fall faster than
T^−½, and a resumed sequence continues."""

import math

import pytest
import torch
from scipy import stats
from support.runs.configured import double, generator, load, normal, uniform
from support.targets.known_targets import F64, sample_target, white
from torch.testing import assert_close

from components.inference.mcmc.sobol import SobolPoints
from components.inference.mcmc.t_mixture import TMixture
from components.metrics.importance_weights import log_relative_variance
from runner.execution.data_digest import data_digest


def estimates(points, T, seeds, dim=2, block=64):
    """Î(θ_1²) of T draws by seed, exact value 1."""
    keys = {"chains": block, "proposal": "gaussian", "inflation": 1.4, "points": points}
    each = [
        sample_target("importance_sampling", white(dim), T // block, seed=seed, **keys)
        for seed in range(seeds)
    ]
    return torch.stack([draws.second_moment[0] for draws in each])


def test_errors_fall_faster_than_with_independent_draws():
    """Slope of log RMSE against log T, which is −½ for independent draws."""
    slopes = {}
    for points in ("random", "sobol"):
        small, large = (
            float((estimates(points, T, 12) - 1).square().mean().sqrt()) for T in (64, 1024)
        )
        slopes[points] = math.log(large / small) / math.log(16)
    assert abs(slopes["random"] + 0.5) < 0.25
    assert slopes["sobol"] < -0.7
    estimate = estimates("sobol", 1024, 12)  # unbiased except for the ratio
    assert abs(estimate.mean() - 1) < 5 * float(estimate.std()) / 12**0.5


@pytest.mark.parametrize("dof", [math.inf, 5.0])
@pytest.mark.parametrize("components", [1, 3])
def test_draws_follow_q(dof, components):
    g = generator(0)
    D = components
    q = TMixture(
        double([0.5, 0.3, 0.2])[:D] / (1 if D == 3 else 0.5),
        4 * normal(g, D, 2),
        normal(g, D, 2, 2),
        dof,
    )
    u = SobolPoints(q.n_uniforms, 3).block(0, 4096, q.centres)
    theta = q.from_uniforms(u)
    draws = q.draw(20_000, g)
    for j in range(2):
        assert stats.ks_2samp(theta[:, j].numpy(), draws[:, j].numpy()).pvalue > 1e-3
    literal = q.from_uniforms(uniform(g, 20_000, q.n_uniforms))
    assert stats.ks_2samp(literal[:, 0].numpy(), draws[:, 0].numpy()).pvalue > 1e-3


def test_points_fill_elementary_intervals_and_resume():
    like = torch.zeros((), dtype=F64)
    sequence = SobolPoints(3, 5)
    whole = torch.cat([sequence.block(s, 32, like) for s in (0, 32)])
    assert ((whole > 0) & (whole < 1)).all()
    for j in range(3):  # one point in each interval of length 1/64
        assert (whole[:, j] * 64).long().unique().numel() == 64
    assert_close(SobolPoints(3, 5).block(32, 32, like), whole[32:], rtol=0, atol=0)
    assert_close(sequence.block(0, 32, like), whole[:32], rtol=0, atol=0)
    assert not torch.equal(SobolPoints(3, 6).block(0, 32, like), whole[:32])


@pytest.mark.parametrize("dim", [1, 8])
def test_relative_variance_grows_exponentially(dim):
    """log σ²_NIS(θ_j) = d log(c²/√(2c² − 1)) + log(c²/(2c² − 1)) for N(0, I) and q = N(0, c² I);
    inverted weights do not have this growth."""
    c = 1.4
    keys = {"chains": 1000, "proposal": "gaussian", "inflation": c}
    draws = sample_target("importance_sampling", white(dim), 40, **keys)
    exact = dim * math.log(c**2 / math.sqrt(2 * c**2 - 1)) + math.log(c**2 / (2 * c**2 - 1))
    assert log_relative_variance(draws.values, draws.log_weights) == pytest.approx(exact, abs=0.06)
    assert abs(log_relative_variance(draws.values, -draws.log_weights) - exact) > 0.2


def test_one_dimensional_density_has_digest():
    problem, _ = load("gaussian", dim=1)
    assert data_digest(problem, {}) != data_digest(load("gaussian", dim=1, sd=2.0)[0], {})
