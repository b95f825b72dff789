"""Nearest-neighbour entropies, compared with literal distances and closed forms, and the divergence
score of densities."""

import math

import pytest
import torch
from support.runs.configured import F64, draw_normal, generator, load, normal
from support.targets.sampler_gate import sample_problem
from torch.distributions import MultivariateNormal

from components.errors import IncompleteResultWarning
from components.metrics.draws_entropy import entropy
from components.posteriors.draws import Draws
from runner.execution.rng import Streams


def test_entropy_equals_the_literal_sum():
    x = draw_normal(7, 2)
    logs = 0.0
    for i in range(7):
        others = sorted(float((x[i] - x[j]).norm()) for j in range(7) if j != i)
        logs += math.log(others[2]) / 7

    def digamma(m):
        return -0.5772156649015329 + sum(1 / j for j in range(1, m))

    assert float(entropy(x, 3)) == pytest.approx(
        digamma(7) - digamma(3) + math.log(math.pi) + 2 * logs, abs=1e-9
    )


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_gaussian_entropy_equals_the_closed_form(dim):
    g = generator(1)
    root = normal(g, dim, dim) + 2 * torch.eye(dim, dtype=F64)
    x = normal(g, 4000, dim) @ root.T
    exact = MultivariateNormal(torch.zeros(dim, dtype=F64), root @ root.T).entropy()
    assert float(entropy(x)) == pytest.approx(float(exact), abs=0.06)


def score_draws(problem, draws):
    return problem.score(Draws(draws, draws[:, 0], ["v", "x1"]), Streams(0))


def test_divergence_from_a_funnel_is_exact():
    """KL(N(0, I) ‖ p) = 3.27 of v ~ N(0, 1.35²), x ~ N(0, e^2v)."""
    problem, _ = load("funnel", dim=2, scale=1.35, spread="sd")
    g = generator(2)
    z = normal(g, 2, 2000, 2)
    exact = 0.5 / 1.35**2 + math.log(1.35) + 0.5 * math.exp(2) - 1
    assert score_draws(problem, z)["kl"] == pytest.approx(exact, abs=4 * 15 / 4000**0.5)
    v = 1.35 * z[..., 0]
    columns = torch.stack([v, v.exp() * z[..., 1]], -1)
    assert score_draws(problem, columns)["kl"] == pytest.approx(0.0, abs=0.08)


def test_repeated_draws_are_weighted_by_their_counts():
    """Points of N(0, 1), repeated once for x < 0 and 1 + Poisson(3) times for x > 0: q is 2 φ(x)
    times 0.2 or 0.8."""
    g = generator(3)
    points = normal(g, 3000, 1)
    times = torch.where(
        points[:, 0] > 0, 1 + torch.poisson(torch.full((3000,), 3.0, dtype=F64), generator=g), 1.0
    )
    x = points.repeat_interleave(times.long(), 0)
    x = x[torch.randperm(len(x), generator=g)]
    exact = (
        0.5 * math.log(2 * math.pi * math.e)
        - math.log(2)
        - 0.2 * math.log(0.2)
        - 0.8 * math.log(0.8)
    )
    assert float(entropy(x)) == pytest.approx(exact, abs=0.06)
    distinct = float(entropy(points))  # the broken variant: repetitions discarded
    assert abs(distinct - exact) > 0.1
    torch.testing.assert_close(
        entropy(x[:500].unique(dim=0)), entropy(x[:500].unique(dim=0).flip(0))
    )


@pytest.mark.parametrize(("step", "refused"), [(2.0, 0.4), (6.0, 0.75)])
def test_metropolis_chain_at_its_target_has_no_divergence(step, refused):
    problem, _ = load("gaussian", dim=2, correlation=0.0)
    problem.log_normaliser = float(problem.log_density(torch.zeros(1, 2, dtype=F64))) + math.log(
        2 * math.pi
    )
    draws = sample_problem(
        "random_walk_mh", problem, steps=3000, chains=8, warmup=0, step_size=step
    )
    assert len(draws.flat.unique(dim=0)) < (1 - 0.5 * refused) * len(draws.flat)
    assert problem.score(draws, Streams(0))["kl"] == pytest.approx(0.0, abs=0.1)


def test_too_few_distinct_draws_are_reported_without_entropy():
    problem, _ = load("funnel", dim=2)
    with pytest.warns(IncompleteResultWarning, match="kl: 1 distinct .* 4 required; raise steps"):
        assert "kl" not in score_draws(problem, torch.zeros(2, 10, 2, dtype=F64))
    with pytest.raises(ValueError, match=r"3-th neighbours of 1 distinct draws .*; use more draws"):
        entropy(torch.zeros(5, 2))
    draws = draw_normal(2, 50, 2)
    whole = problem.log_density
    problem.log_density = lambda theta: torch.where(theta[:, 0] > 0, whole(theta), -torch.inf)
    assert score_draws(problem, draws)["kl"] == math.inf
    problem.log_normaliser = None
    assert "kl" not in score_draws(problem, draws)
