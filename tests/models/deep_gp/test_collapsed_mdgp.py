"""The deep GP with its top layer integrated out, compared with its equations and with the shallow
GPs that it starts from."""

import math

import pytest
import torch
from support.runs.configured import F64, build_model, generator, normal
from support.small.shallow_gp_problems import gradient_error, predict
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.problems.supervised import Supervised

T = 3
N = 24
D = 2


@pytest.fixture
def problem():
    g = generator(0)
    x = normal(g, N, D)
    task = torch.arange(N) % T
    y = torch.full((N, T), math.nan, dtype=F64)
    y[torch.arange(N), task] = torch.sin(x.sum(1)) + 0.1 * normal(g, N)
    train = Batch(x, y, ~y.isnan(), 1.0)
    test = Batch(x[:5], y[:5].nan_to_num(), torch.ones(5, T, dtype=torch.bool), 1.0)
    return Supervised("toy", "real", train, test, None, task_names=["a", "b", "c"])


def build(problem, model="collapsed_mdgp", **changes):
    return build_model(model, problem, **changes)


def matern52(a, b, lengthscale):
    r = torch.cdist(a / lengthscale, b / lengthscale)
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * torch.exp(-math.sqrt(5) * r)


def literal_features(module, x, eps):
    """g_i(x) = x_i + σ Σ_m A_m(x) v_im, A(x) = L⁻¹ κ(Z, x)."""
    inner = module.inner
    Z = inner.inducing
    ell = inner.log_lengthscale.exp()
    L = torch.linalg.cholesky(matern52(Z, Z, ell) + inner.jitter * torch.eye(len(Z), dtype=F64))
    A = torch.linalg.solve(L, matern52(Z, x, ell))
    v = inner.q_mean + inner.log_q_scale.exp() * eps
    return x + (0.5 * inner.log_variance).exp() * (v @ A).T


@pytest.mark.parametrize("top", ["independent", "coregionalised"])
def test_bound_equals_its_equation(problem, top):
    """ELBO = S⁻¹ Σ_s log N(y | 0, K(Λ_s) + Σ) − KL[q(v) ‖ N(0, I)], without a hyper-prior."""
    module = build(
        problem, top=top, n_inducing=6, hyperprior=None, top_lengthscale=2.0, inner_q_mean=0.3
    )
    noise = module.draw_noise(problem.train, 2, generator(1))
    terms = module.elbo(problem.train, noise)
    covariance = module.top.covariance
    total = 0.0
    task = torch.arange(N) % T
    ell = covariance.log_lengthscale.exp().expand(T, -1)[task]
    same = task[:, None] == task
    between = (
        covariance.coregionalisation[task][:, task]
        if top == "coregionalised"
        else same * covariance.log_variance[task].exp()
    )
    for eps in noise:
        K = between * matern52(*2 * [literal_features(module, problem.train.x, eps)], ell)
        K = K + torch.diag(module.top.likelihood.noise_variance[task] + module.top.jitter)
        y = problem.train.y[torch.arange(N), task]
        total = total + MultivariateNormal(torch.zeros_like(y), K).log_prob(y)
    mean = module.inner.q_mean
    sd = module.inner.log_q_scale.exp()
    kl = kl_divergence(Normal(mean, sd), Normal(0.0, 1.0)).sum()
    assert_close(
        (terms["kl"], terms["log_likelihood"], terms["elbo"]), (kl, total / 2, total / 2 - kl)
    )


@pytest.mark.parametrize(("top", "shallow"), [("independent", "igp"), ("coregionalised", "cgp")])
def test_model_without_a_warp_is_the_shallow_gp(problem, top, shallow):
    """Inner variance → 0 with an identity mean: the bound is the log marginal likelihood of the
    exact GP."""
    deep = build(
        problem,
        top=top,
        n_inducing=6,
        inner_variance=1e-14,
        top_variance=4.0,
        top_lengthscale=2.0,
        jitter=1e-8,
    )
    changes = {"lengthscale": 2.0, "variance": 4.0, "hyperprior": 0.7, "jitter": 1e-8}
    flat = build(problem, shallow, **changes)
    if shallow == "cgp":  # both draw W at random
        flat.covariance.W.data.copy_(deep.top.covariance.W.data)
    noise = deep.draw_noise(problem.train, 1, generator(1))
    expected = flat.elbo(problem.train, None)
    assert deep.elbo(problem.train, noise)["log_likelihood"].item() == pytest.approx(
        expected["log_likelihood"].item(), abs=1e-5
    )
    x = normal(generator(2), 7, D)
    ours = deep.sample_predictive(x, 3, torch.Generator())
    theirs = predict(flat, x)
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-5)
    assert torch.allclose(ours.variance, theirs.variance, atol=1e-5)


def test_a_draw_is_one_function(problem):
    """A draw has the same features at an input in any batch."""
    module = build(problem, n_inducing=6)
    (eps,) = module.draw_noise(None, 1, generator(1))
    whole, _ = module.features(problem.train.x, eps)
    part, _ = module.features(problem.train.x[3:5], eps)
    assert_close(whole[3:5], part)


def test_gradients_equal_central_differences(problem):
    """Central differences of every parameter, including inner ones."""
    module = build(problem, top="independent", n_inducing=4, inner_q_mean=0.5)
    noise = module.draw_noise(None, 1, generator(3))
    assert gradient_error(module, lambda: module.elbo(problem.train, noise)["elbo"]) < 1e-4
