"""Annealed importance sampling of log p(x): its schedule, its transitions and unbiased weights."""

from functools import partial

import pytest
import torch
from support.runs.configured import F64, draw_normal, normal
from support.small.unlabelled_problems import evidence_z, log_evidence, ppca, real_rows, target_rows
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.maths.row_hamiltonian import transition
from components.metrics.evidence import annealed
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from runner.execution.rng import Streams

N = 25


@pytest.mark.parametrize("temperatures", [1, 2, 7])
def test_the_schedule_goes_from_prior_to_posterior(temperatures):
    betas = annealed.schedule(temperatures)
    assert (betas[0], betas[-1], len(betas)) == (0.0, 1.0, temperatures + 1)
    assert sorted(betas) == betas
    raw = torch.sigmoid(torch.linspace(-4, 4, temperatures + 1, dtype=F64))
    assert betas == pytest.approx(((raw - raw[0]) / (raw[-1] - raw[0])).tolist())


@pytest.mark.parametrize("temperatures", [1, 3, 8])
def test_annealed_weights_are_unbiased_for_any_schedule(temperatures):
    """With few temperatures and rows near the centre, weights are bounded; the mean of ŵ must still
    be p(x)."""
    few = real_rows(n=4)
    module = ppca(few, exact_guide=True)
    (up,) = module.generative.network.layers
    rows = Rows(up.bias.detach() + 0.5 * draw_normal(4, 4, seed=1), 1.0)
    exact = log_evidence(module, rows.x)
    like = torch.zeros(4, 2, dtype=F64)
    w, _ = annealed.annealed_log_weights(
        target_rows(module, rows), like, temperatures, 4_000, Streams(0).noise
    )
    assert (w - exact).exp().std() > 0.15, "a test of something"
    assert abs(evidence_z(w, exact)) < 4


@pytest.fixture
def problem():
    return real_rows(n=N)


def test_step_sizes_are_learnt_before_the_counting_run(problem):
    """Step sizes are independent of the run's draws: given them and the noise, the weights equal
    the weights of a run with fixed steps."""
    target = target_rows(ppca(problem, exact_guide=True), problem.test)
    like = torch.zeros(N, 2, dtype=F64)
    g = Streams(0).noise
    betas = annealed.schedule(5)
    _, sizes, rates = annealed.anneal(target, like, 2, betas, None, g)
    for t in range(4):
        up = torch.where(rates[t] > 0.65, 1.05, 1 / 1.05)
        assert_close(sizes[t + 1], sizes[t] * up.double())
    w, used, _ = annealed.anneal(target, like, 8, betas, sizes, g)
    assert torch.equal(used, sizes)
    assert torch.equal(annealed.annealed_log_weights(target, like, 5, 8, Streams(0).noise)[0], w)


def test_many_temperatures_estimate_the_likelihood(problem):
    module = ppca(problem, exact_guide=False)
    exact = log_evidence(module, problem.test.x)
    target = target_rows(module, problem.test)
    like = torch.zeros(N, 2, dtype=F64)
    w, rate = annealed.annealed_log_weights(target, like, 60, 200, Streams(0).noise)
    assert_close(log_mean_exp(w), exact, rtol=0, atol=0.15)
    assert (log_mean_exp(w) - exact).mean().abs() < 0.04
    assert rate.mean() > 0.5


def test_transition_leaves_its_target_invariant():
    """Draws of N(0, (β/v + 1 − β)⁻¹) keep this distribution with steps so large that a third is
    rejected."""
    v = 0.2
    beta = 0.4

    def target(z):
        return -0.5 * (z.square().sum(-1) / v)

    sd = (beta / v + (1 - beta)) ** -0.5
    g = Streams(0).noise
    z = sd * normal(g, 200_000, 1, 1)
    eps = torch.full((1,), 1.7 * sd, dtype=F64)
    for _ in range(3):
        z, position_after, rate = transition(
            partial(annealed.annealed_log_density, target, beta), z, eps[:, None], 10, g
        )
    assert_close(position_after, target(z))
    assert rate.mean() < 0.9
    assert z.mean() == pytest.approx(0, abs=4 * sd / 200_000**0.5)
    assert z.var() == pytest.approx(sd**2, rel=4 * (2 / 200_000) ** 0.5)
