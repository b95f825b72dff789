"""Probabilistic PCA in closed form: its literal likelihood, which is maximal."""

import math

import pytest
import torch
from support.runs.configured import build_model, component
from support.small.unlabelled_problems import real_rows
from torch.autograd import grad
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.metrics.unlabelled.neighbours import leave_one_out_error
from components.posteriors.latent import LatentPosterior
from runner.execution.rng import Streams


def test_maximum_likelihood_equals_the_formula():
    """ℒ = −N/2 (I ln 2π + ln|C| + tr C⁻¹ S), C = W Wᵀ + σ² I: Tipping and Bishop (1999), eq. (4)."""
    problem = real_rows(n=80)
    x = problem.train.x
    module = build_model("ppca", problem, latent_dim=2)
    S = torch.cov(x.T, correction=0)
    values = torch.linalg.eigvalsh(S)  # ascending
    noise = values[:2].mean()
    assert_close(module.generative.log_noise.detach().exp(), noise)
    W = module.generative.network.layers[0].weight
    C = (W @ W.T + noise * torch.eye(4)).detach()
    literal = -40 * (
        4 * math.log(2 * math.pi) + torch.logdet(C) + (torch.linalg.inv(C) @ S).trace()
    )
    law = MultivariateNormal(x.mean(0), C)
    assert_close(law.log_prob(x).sum(), literal)
    with torch.no_grad():
        weights = LatentPosterior(module).row_log_weights(problem.test, 7, Streams(0).noise)
    assert_close(weights, law.log_prob(problem.test.x).expand(7, -1))
    # at the maximum the other eigenvalues equal the sample's
    assert_close(torch.linalg.eigvalsh(C)[2:], values[2:])


def test_gradient_is_zero_at_the_maximum():
    problem = real_rows(n=80)
    module = build_model("ppca", problem, latent_dim=2)
    parameters = list(module.generative.parameters())

    def slope():
        up = module.generative.network.layers[0]
        C = up.weight @ up.weight.T + module.generative.log_noise.exp() * torch.eye(4).double()
        log_p = MultivariateNormal(up.bias, C).log_prob(problem.train.x).sum()
        gradients = grad(log_p, parameters)
        return max(float(g.abs().max()) for g in gradients)

    assert slope() < 1e-9
    with torch.no_grad():  # without σ² in W = U (Λ − σ² I)^½
        W = module.generative.network.layers[0].weight
        noise = module.generative.log_noise.exp()
        W.mul_(((W.square().sum(0) + noise) / W.square().sum(0)).sqrt())
    assert slope() > 1.0


def test_training_stays_at_the_maximum():
    problem = real_rows(n=40)
    module = build_model("ppca", problem, latent_dim=2)
    original = module.generative.network.layers[0].weight.clone()
    inference = component("inference", "fixed")
    state = inference.init(module, problem, Streams(0))
    state, _ = inference.step(state, problem.train, Streams(0))
    scores = problem.score(inference.posterior(state), Streams(0))
    assert scores["nelbo"] == pytest.approx(scores["nll_bound"], rel=1e-9)
    assert torch.equal(original, module.generative.network.layers[0].weight)


def test_latent_dimension_is_below_that_of_the_data():
    with pytest.raises(ConfigMismatchError, match=r"model.latent_dim=4: .*; lower it"):
        build_model("ppca", real_rows(n=20), latent_dim=4)


def test_neighbour_error_matches_hand_calculation():
    means = torch.tensor([[0.0], [0.1], [5.0], [5.2], [5.3]])
    assert_close(leave_one_out_error(means, torch.tensor([0, 0, 1, 1, 0])), 0.4)
