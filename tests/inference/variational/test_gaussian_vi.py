"""q(θ) = N(m, L Lᵀ) compared with conjugate posteriors of known bound, evidence and gradients."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from conjugate_regression import (
    LINEAR,
    OfUnknownPrior,
    exact_bound,
    gaussian_vi,
    posterior,
    regression,
)
from support.runs.checked_pairs import check_pairs
from support.runs.configured import F64, component
from support.small.small_problems import advance, train

from components.contracts.capabilities import BernoulliLayers, LogJoint, ThetaPredictive
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, Model
from components.errors import ConfigMismatchError
from components.posteriors.variational import GaussianPosterior
from runner.errors import ConfigError
from runner.execution.rng import Streams


@pytest.mark.parametrize(("noise", "batch_size"), [("shared", None), ("rows", 8)])
def test_full_covariance_reaches_linear_posterior(noise, batch_size):
    problem, model = regression(batch_size)
    inference = gaussian_vi(n_samples=8, lr=0.03, initial_std=0.3, noise=noise)
    state, rng = train(inference, LINEAR, problem, 400)
    state.optimizer.settings["lr"] = 0.002
    state, info = advance(inference, state, problem, rng, 400, 700)
    assert set(info) == {"elbo", "kl", "grad_norm"}
    m, S = posterior(model, problem)
    q = inference.posterior(state)
    sd = S.diagonal().sqrt()
    assert ((q.q_mean - m) / sd).abs().max() < 0.15
    assert ((q.q_covariance - S) / torch.outer(sd, sd)).abs().max() < 0.15
    evidence = model.log_evidence(problem.train)
    assert evidence - 0.1 < exact_bound(state.module, model, problem) <= evidence


def test_diagonal_covariance_has_posterior_precisions():
    """The best factorised q of a Gaussian has its mean and the variances 1/Λ_jj (Bishop 2006, eq.
    10.12); sgd starts from a drawn mean."""
    problem, model = regression()
    keys = {"covariance": "diagonal", "start": "drawn", "initial_std": 0.2, "n_samples": 16}
    inference = gaussian_vi(optimizer="sgd", lr=0.005, momentum=0.9, **keys)
    state, _ = train(inference, LINEAR, problem, 700)
    m, S = posterior(model, problem)
    precise = torch.linalg.inv(S).diagonal()
    q = inference.posterior(state)
    assert ((q.q_mean - m) * precise.sqrt()).abs().max() < 0.3
    assert torch.allclose(q.q_covariance, (1 / precise).diag(), rtol=0.15, atol=1e-12)
    bound = exact_bound(state.module, model, problem)
    assert bound < model.log_evidence(problem.train) - 0.05


def test_posterior_predicts_with_draws_of_q():
    problem, model = regression()
    inference = gaussian_vi(draws=10000, initial_std=0.5)
    state, rng = train(inference, LINEAR, problem, 30)
    actual = inference.posterior(state)
    assert isinstance(actual, GaussianPosterior)
    assert torch.equal(actual.q_covariance, state.module.covariance)
    draws = actual.flat
    sd = actual.q_covariance.diagonal().sqrt()
    assert ((draws.mean(0) - actual.q_mean) / sd).abs().max() < 0.04
    assert torch.allclose(torch.cov(draws.T), actual.q_covariance, atol=0.03)
    mixture = actual.predict(problem.test.x, rng.evaluation)
    X = torch.cat([torch.ones(problem.n, 1, dtype=F64), problem.test.x], 1)
    assert torch.allclose(mixture.mu.mean(0)[:, 0], X @ actual.q_mean, atol=0.05)
    scores = problem.score(actual, rng)
    assert {"rmse", "nlpp", "nelbo"} <= set(scores)
    exact = exact_bound(state.module, model, problem).detach()
    assert scores["nelbo"] == pytest.approx(-float(exact), rel=0.02)
    # they depend only on q
    assert torch.equal(inference.posterior(state).draws, draws.view_as(actual.draws))


def test_log_joint_without_gradient_is_refused():
    problem, model = regression()
    dull = OfUnknownPrior(model)
    dull.log_prior = lambda theta: model.log_prior(theta).detach()
    dull.log_likelihood = lambda theta, batch: model.log_likelihood(theta, batch).detach()
    with pytest.raises(
        ConfigMismatchError, match=r"gradient of the log joint, .*; use inference=random_walk_mh"
    ):
        gaussian_vi().init(dull, problem, Streams(0))


class OfLayers(Gradient):
    requires = Requirements(capabilities=frozenset({BernoulliLayers}))


class WithThem(Model):
    requires = Requirements(kinds=frozenset({"supervised"}))
    offers: ClassVar[frozenset[type]] = frozenset({LogJoint, ThetaPredictive, BernoulliLayers})


def test_incompatible_gradient_is_refused():
    data = component("dataset", "two_moons")
    inference = gaussian_vi()
    check_pairs(data, component("model", "logistic_regression"), inference, None)
    wrong = inference.model_copy(update={"gradient": OfLayers(name="of_layers")})
    with pytest.raises(
        ConfigError,
        match=r"which the q\(θ\) of inference=gaussian_vi lacks",
    ):
        check_pairs(data, WithThem(name="layered"), wrong, None)
