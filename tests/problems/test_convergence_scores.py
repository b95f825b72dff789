"""Convergence scores of density and supervised problems for a sample of draws."""

import math

import pytest
import torch
from support.runs.configured import F64, draw_normal, load
from support.small.small_problems import classes, real
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.predictive import Categorical, GaussianMixture
from components.errors import IncompleteResultWarning
from components.metrics.diagnostics import convergence, split_rhat
from components.metrics.stein_discrepancy import ksd_squared
from components.posteriors.draws import Draws
from runner.execution.rng import Streams

APART = 1.5  # R̂ of ranks of three chains, one of them far away, is 1.69


class Linear:
    """f(x) = θ_1 x_1 + … in two tasks, independent of the rest of θ, with optional parameter
    names."""

    def __init__(self, names, target="real"):
        self.names = names
        self.target = target

    def constrain(self, theta):
        return theta

    def predictive(self, theta, x):
        f = theta[:, : x.shape[1]] @ x.T  # [K, B]
        if self.target == "real":
            mu = torch.stack([f, 2 * f], -1)  # [K, B, T]
            return GaussianMixture(mu, torch.ones_like(mu))
        # [K, B, 1, 3]
        return Categorical(torch.stack([torch.zeros_like(f), f, -f], -1).unsqueeze(2))


def make_draws(names, target="real", n=50, dim=4):
    theta = draw_normal(3, n, dim)
    return Draws(theta, theta[:, 0], names, Linear(names, target))


def test_named_parameters_are_diagnosed_directly():
    draws = make_draws(["a", "b", "c", "d"])
    scores = real(n_inputs=3).score(draws, Streams(0))
    assert {k: scores[k] for k in ("ess", "ess_tail", "rhat")} == convergence(draws)[0]


@pytest.mark.parametrize("target", [real, classes])
@pytest.mark.parametrize("names", [[], ["a", "b", "c", "d"]])
def test_chains_are_compared_by_predictions(names, target):
    """This score replaces R̂ if parameters have no names, and is listed in addition to it
    otherwise.
    """
    draws = make_draws(names, target.__name__)
    draws.draws[0, :, 3] += 100.0  # a weight without effect on predictions: its chains may disagree
    problem = target(n_inputs=3)
    assert float(convergence(draws)[0]["rhat"]) > APART
    scores = problem.score(draws, Streams(0))
    assert (scores["rhat"] > APART) if names else (scores["rhat"] < 1.1)
    score = "rhat_predictions" if names else "rhat"
    assert scores[score] < 1.1
    if names:
        f = torch.einsum("cnd,bd->cnb", draws.draws[..., :3], problem.test.x)
        assert_close(scores[score], float(split_rhat(f).max()))
    draws.draws[0, :, 0] += 100.0  # a weight with an effect
    assert problem.score(draws, Streams(0))[score] > APART


def test_many_named_parameters_are_diagnosed_by_predictions():
    draws = make_draws([f"w{j}" for j in range(201)], dim=201)
    draws.draws[0, :, 200] += 100.0
    assert real(n_inputs=3).score(draws, Streams(0))["rhat"] < 1.1


def test_weighted_or_few_draws_are_diagnosed():
    draws = make_draws([])
    weighted = Draws(
        draws.draws, draws.start, [], draws.model, log_weights=torch.zeros(3, 50, dtype=F64)
    )
    scores = real(n_inputs=3).score(weighted, Streams(0))
    assert_close(scores["weight_ess"], 150.0)
    assert "ess" not in scores
    assert "rhat_predictions" not in scores
    with pytest.warns(IncompleteResultWarning, match="2 draws per chain .*; raise steps"):
        assert "ess" not in real(n_inputs=3).score(make_draws([], n=2), Streams(0))


def test_density_reports_the_stein_discrepancy_of_500_draws():
    problem, _ = load("mixture_of_gaussians_2d")
    theta = draw_normal(4, 200, 2, seed=1)
    draws = Draws(theta, theta[:, 0], list(problem.names))
    scores = problem.score(draws, Streams(0))
    chosen = theta.flatten(0, 1)[torch.linspace(0, 799, 500).round().long()].requires_grad_()
    (score,) = grad(problem.log_density(chosen).sum(), chosen)
    sd = (problem.second_moment - problem.mean.square()).sqrt()
    assert scores["ksd"] == pytest.approx(
        float(ksd_squared(chosen.detach() / sd, score * sd).sqrt()), rel=1e-12
    )
    problem.log_density = lambda x: torch.zeros(len(x))  # no gradient: no discrepancy
    assert math.isnan(problem.score(draws, Streams(0))["ksd"])
