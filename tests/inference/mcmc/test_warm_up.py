"""Warm-ups of random-walk Metropolis and MALA from starts far in the tails."""

import pytest
from support.runs.configured import component
from support.small import small_problems
from support.targets.exact_moments import regression_moments

from components.metrics.diagnostics import bulk_ess, split_rhat
from runner.execution.rng import Streams


def run_from_prior(name, steps, **settings):
    """Sample a regression from starts of the prior, at a log joint 10⁴ nats below the posterior's.

    Returns the largest error of a posterior mean in posterior standard deviations, and the draws."""
    problem = small_problems.real(n=300, n_inputs=8, n_tasks=1, missing=0.0)
    model = component("model", "linear_regression").build(problem, Streams(0))
    first, second = regression_moments(model, problem.train)
    inference = component("inference", name, **settings)
    draws = inference.posterior(small_problems.train(inference, model, problem, steps)[0])
    return float(((draws.mean - first) / (second - first**2).sqrt()).abs().max()), draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [("mala", {"steps": 3500}), ("random_walk_mh", {"steps": 10_000, "thinning": 5})],
)
def test_target_is_reached_from_distant_starts(name, settings):
    error, draws = run_from_prior(name, **settings)
    assert error < 0.15
    assert split_rhat(draws.values).max() < 1.02
    assert bulk_ess(draws.values).min() > 400


@pytest.mark.slow
def test_covariance_learnt_before_convergence_is_detected():
    error, _ = run_from_prior("mala", steps=3500, covariance_delay=0.0)
    assert error > 10
