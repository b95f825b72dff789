import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import build_model, double, generator
from support.small.small_problems import classes, real
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.inference.log_joint import log_joint, value_and_gradient

NETWORKS = {
    "two layers": {"widths": [5, 4]},
    "known noise": {"widths": [3], "noise": 0.05, "activation": "tanh"},
    "flat prior of the noise": {"widths": [1], "noise_spread": None},
}


def collapse(problem, **keys):
    model = build_model("mlp", problem, **{"prior_std": 0.7} | keys)
    return model.to(problem.train.x.dtype).integrate_out()


def small(missing=0.2):
    problem = real(n=30, n_tasks=1, missing=missing)
    mask = torch.ones(30, 1, dtype=torch.bool)
    mask[: round(missing * 30)] = False
    return replace(problem, train=replace(problem.train, mask=mask))


def dense(model, rest, problem):
    """Φ [n, m] and y [n] of rows with a label, σ², and the inner weights of one particle, by
    hand."""
    network = model.network
    is_labelled = problem.train.mask[:, 0]
    h = problem.train.x[is_labelled]
    offset = 0
    for out, inside in network.shapes[:-1]:
        w = rest[offset : offset + out * inside].reshape(out, inside)
        b = rest[offset + out * inside : offset + out * inside + out]
        h = network.activation(h @ w.T + b)
        offset = offset + out * inside + out
    phi = torch.cat([h, torch.ones(len(h), 1, dtype=h.dtype)], 1)
    log_noise = rest[offset] if network.learns_noise else network.log_noise[0]
    return phi, problem.train.y[is_labelled, 0], log_noise.exp(), rest[:offset]


@pytest.mark.parametrize("name", NETWORKS)
def test_density_equals_the_dense_gaussian(name):
    problem = small()
    model = collapse(problem, **NETWORKS[name])
    rest = model.sample_prior(4, generator(1))
    assert rest.shape == (4, model.dim)
    got, _ = value_and_gradient(model, rest, problem.train)
    for k in range(4):
        phi, y, noise, weights = dense(model, rest[k], problem)
        covariance = noise * torch.eye(len(y), dtype=y.dtype) + 0.7**2 * phi @ phi.T
        literal = MultivariateNormal(torch.zeros_like(y), covariance).log_prob(y)
        literal = literal + Normal(0.0, double(0.7)).log_prob(weights).sum()
        if model.network.learns_noise and model.network.noise_spread is not None:
            literal = literal + Normal(double(math.log(0.1)), 2.0).log_prob(noise.log())
        assert float(got[k]) == pytest.approx(float(literal), rel=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradient_equals_finite_differences(name):
    problem = small()
    model = collapse(problem, **NETWORKS[name])
    g = generator(2)
    rest = model.sample_prior(3, g)
    value, gradient = value_and_gradient(model, rest, problem.train)
    assert_close(value, log_joint(model, rest, problem.train))
    u = torch.randn(rest.shape, generator=g, dtype=rest.dtype)
    ahead, behind = (log_joint(model, rest + step * u, problem.train) for step in (1e-6, -1e-6))
    assert_close((gradient * u).sum(1), (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-5)


def test_gradient_is_accurate_in_float32_with_small_noise():
    problem = small(missing=0.0)
    exact = collapse(problem, widths=[8, 8], noise=1e-4)
    rest = exact.sample_prior(4, generator(3))
    train = problem.train
    single = replace(problem, train=replace(train, x=train.x.float(), y=train.y.float()))
    rough = collapse(single, widths=[8, 8], noise=1e-4)
    value, gradient = value_and_gradient(rough, rest.float(), single.train)
    true, slope = value_and_gradient(exact, rest, train)
    assert value.dtype == gradient.dtype == torch.float32
    assert_close(value.double(), true, rtol=1e-3, atol=1e-2)
    assert float((gradient - slope).norm() / slope.norm()) < 1e-3


def test_completed_draws_have_the_conditional_moments():
    problem = small()
    n = 40_000
    model = collapse(problem, widths=[4, 3])
    rest = model.sample_prior(1, generator(4))
    phi, y, noise, _ = dense(model, rest[0], problem)
    covariance = torch.linalg.inv(phi.T @ phi / noise + torch.eye(4, dtype=y.dtype) / 0.7**2)
    mean = covariance @ phi.T @ y / noise
    theta = model.complete(rest.expand(n, -1), problem.train, generator(5))
    assert_close(model.rest(theta), rest.expand(n, -1), rtol=0, atol=0)
    w = theta[:, model.below : model.below + 4]
    assert ((w.mean(0) - mean) / (covariance.diagonal() / n).sqrt()).abs().max() < 4
    c = covariance.diagonal()
    error = ((torch.outer(c, c) + covariance**2) / n).sqrt()  # of a covariance of n Gaussian draws
    assert ((w.T.cov() - covariance) / error).abs().max() < 4


def test_unfactorable_matrices_give_no_finite_values():
    problem = small()
    model = collapse(problem, widths=[4])
    rest = model.sample_prior(2, generator(7))
    rest[1] *= 1e200
    value, gradient = value_and_gradient(model, rest, problem.train)
    assert torch.isfinite(value).tolist() == [True, False]
    assert torch.isfinite(gradient).all(1).tolist() == [True, False]


@pytest.mark.parametrize("problem", [real(n_tasks=2), classes()], ids=["tasks", "classes"])
def test_models_without_a_closed_form_are_refused(problem):
    with pytest.raises(
        ConfigMismatchError, match=r"inference\.collapse=last_layer: .*; set it to none"
    ):
        collapse(problem, widths=[4])
    with pytest.raises(ConfigMismatchError, match="a hidden layer; set it to none"):
        collapse(small(), widths=[])
