"""Langevin chains: what is kept of them, minibatches, and a mixture from end to end.

Steps and stationary moments are checked in test_sgmcmc_recipe and test_sgmcmc_stationary."""

import itertools

import pytest
import torch
from support.runs.configured import component, double, generator, load, normal
from support.targets.known_targets import GaussianTarget, run_chains, walk
from torch.testing import assert_close

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Rows
from components.errors import NumericalError
from components.inference.log_joint import log_joint, value_and_gradient

VARIANCE = double([1.0, 0.25])
TARGET = GaussianTarget(double([0.5, -2.0]), VARIANCE.diag())


class Regression(GaussianTarget):
    """y ~ N(θ_1, 1), with the target as the prior."""

    def log_likelihood(self, theta, batch):
        return -0.5 * (batch.x - theta[:, :1]) ** 2  # [K, B]


def test_minibatch_gradients_are_unbiased():
    model, y = Regression(TARGET.mean, VARIANCE.diag()), normal(generator(0), 6)
    theta = TARGET.sample_prior(4, generator(1))
    whole = value_and_gradient(model, theta, Rows(y, 1.0))
    parts = [
        value_and_gradient(model, theta, Rows(y[list(b)], 3.0))
        for b in itertools.combinations(range(6), 2)
    ]
    for part, expected in zip(zip(*parts, strict=True), whole, strict=True):
        assert_close(torch.stack(part).mean(0), expected)
    prior = -0.5 * ((theta - TARGET.mean) ** 2 / VARIANCE).sum(1)
    literal = prior - 0.5 * ((y - theta[:, :1]) ** 2).sum(1)
    assert_close(log_joint(model, theta, Rows(y, 1.0)), literal)


def test_burn_in_and_thinning_decide_which_draws_are_kept():
    schedule = {"schedule": "polynomial", "decay": 0.6, "decay_scale": 10.0}
    sgld = component("inference", "sgld", chains=3, burn_in=4, thinning=3, **schedule)
    path = list(walk(sgld, TARGET, 12))
    numbers = [sgld.posterior(state).n_draws for state, _ in path]
    assert numbers == [len(state.kept) for state, _ in path]
    assert [info["step_size"] for _, info in path] == [sgld.step_size_at(t) for t in range(12)]
    state, info = path[-1]
    kept = sgld.posterior(state)
    assert info["draws"] == 2
    assert torch.equal(kept.draws, torch.stack([path[6][0].theta, path[9][0].theta], 1))
    assert torch.equal(kept.flat.mean(0), kept.mean)


def test_a_step_too_large_names_its_key():
    with pytest.raises(NumericalError, match=r"lower inference\.step_size"):
        run_chains(component("inference", "sgld", step_size=5.0), TARGET, 2000)


def test_mixture_of_gaussians_from_end_to_end():
    problem, rng = load("mixture_of_gaussians_2d")
    sgld = component("inference", "sgld", chains=400, step_size=0.02, burn_in=100)
    model = component("model", "target_density").build(problem, rng)
    assert isinstance(model, LogJoint)
    draws = sgld.posterior(run_chains(sgld, model, 200, rng)[0])
    assert draws.draws.shape == (400, 10, 2)
    scores = problem.score(draws, rng)
    assert {"error_mean", "error_second_moment", "ess", "rhat", "rhat/x1"} <= set(scores)
    # Chains can hardly change modes in so few steps; within a mode their spread is v/(1 − ε/2v) =
    # 0.111.
    nearest = 2 * (draws.flat / 2).round().clamp(-1, 1)
    within = (draws.flat - nearest).square().mean()
    assert float(within) == pytest.approx(0.1 / 0.9, rel=0.06)
    figures = {"particles", "trace", "ranks", "pairs", "autocorrelation"}
    assert set(problem.draw(draws, rng)) == figures
