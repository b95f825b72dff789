"""Product kernels in every Gaussian process: linear kernels are Bayesian linear regressions, and a
linear top layer is the linear mixing of eq. (3.16)."""

import pytest
import torch
from support.runs.configured import build_model, generator
from support.small.shallow_gp_problems import (
    F64,
    PLAIN,
    predict,
    problem,
    scatter_parameters,
)
from torch.distributions import MultivariateNormal
from torch.testing import assert_close


def regress(features, y, prior, noise, new):
    """Log evidence, and mean and variance at new, for y = wᵀ φ + N(0, noise) with w ~ N(0,
    diag(prior)). Source: Rasmussen and Williams (2006), eqs. (2.8) and (2.9)."""
    A = features.T @ features / noise + torch.diag(1 / prior)
    mean = torch.linalg.solve(A, features.T @ y) / noise
    covariance = torch.linalg.inv(A)
    C = features @ torch.diag(prior) @ features.T + noise * torch.eye(len(y), dtype=F64)
    evidence = MultivariateNormal(torch.zeros_like(y), C).log_prob(y)
    return float(evidence), new @ mean, (new @ covariance * new).sum(1) + noise


@torch.no_grad()
def test_linear_kernel_equals_bayesian_linear_regression():
    p = problem(n=20)
    module = build_model("igp", p, **PLAIN, kernel="linear")
    scatter_parameters(module)
    ours = predict(module, p.test.x)
    total = 0.0
    for t in range(3):
        rows = p.train.mask[:, t]
        prior = (module.covariance.log_variance[t] - 2 * module.covariance.log_lengthscale[t]).exp()
        noise = module.likelihood.noise_variance[t]
        evidence, mean, variance = regress(
            p.train.x[rows], p.train.y[rows, t], prior, noise, p.test.x
        )
        total += evidence
        assert_close(ours.mean[:, t], mean)
        assert_close(ours.variance[:, t], variance)
    assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(total, abs=1e-6)


@torch.no_grad()
def test_linear_top_layer_equals_equation_3_16():
    # f_t(x) = Σ_i w_i^t g_i(x), w_i^t ~ N(0, σ_t² ω_i^t), given the shared functions g
    p = problem(n=20)
    changes = {"top": "independent", "top_kernel": "linear", "n_inducing": 6, "jitter": 1e-10}
    module = build_model("collapsed_mdgp", p, **changes, hyperprior=None)
    scatter_parameters(module, scale=0.2)
    eps = torch.randn(module.inner.q_mean.shape, generator=generator(1)).to(F64)
    g, new = (module.features(x, eps)[0] for x in (p.train.x, p.test.x))
    labels = module._labels(eps)[0]
    ours = module.top.predict_from(module.top.condition_on(labels), labels, new)
    total = 0.0
    for t in range(3):
        rows = p.train.mask[:, t]
        covariance = module.top.covariance
        prior = (covariance.log_variance[t] - 2 * covariance.log_lengthscale[t]).exp()
        noise = module.top.likelihood.noise_variance[t]
        evidence, mean, variance = regress(g[rows], p.train.y[rows, t], prior, noise, new)
        total += evidence
        assert_close(ours.mean[:, t], mean)
        assert_close(ours.variance[:, t], variance)
    bound = module.elbo(p.train, eps[None])
    assert float(bound["log_likelihood"]) == pytest.approx(total, abs=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("model", ["mmdgp", "smdgp"])
def test_sparse_linear_top_layer_mixes_shared_and_own_processes(model):
    # μ_t(λ) of q(f_t) is w_tᵀ λ in the features of eq. (3.16), shared and the task's own
    p = problem(n=20)
    changes = {"n_inducing": 8, "inner_dim": 2, "top_mean": "zero", "jitter": 1e-10}
    for shape, is_linear in (("linear", True), ("matern52", False)):
        module = build_model(model, p, **changes, top_kernel=shape)
        scatter_parameters(module)
        top = module.top.layer
        width = top.inducing.shape[-1]
        assert width >= 2
        a, b = torch.randn(2, 5, width, generator=generator(0)).to(F64)
        means = [top(x)[0] for x in (a, b, 2 * a - b)]
        close = torch.allclose(means[2], 2 * means[0] - means[1], atol=1e-6)
        assert close is is_linear
