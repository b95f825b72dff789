import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import classes, component, train
from torch.autograd import grad
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.models.shallow_gp.gp_classifier import find_median_distance

DSVI = component("inference", "dsvi", lr=0.05)


def gp(**changes):
    return component("model", "gp_classifier", **({"n_inducing": 8, "lengthscale": 0.7} | changes))


def train_posterior(problem, model, steps=30):
    state, _ = train(DSVI, model, problem, steps)
    return DSVI.posterior(state)


def literal_moments(module, x, variance_matters=True):
    """μ = k(x, Z) K⁻¹ L m and v = σ² − kᵀ K⁻¹ k + kᵀ L⁻ᵀ S L⁻¹ k of one latent function at x [D],
    with a Matérn-5/2 kernel."""

    def k(a, b):
        r = math.sqrt(5) * (a[:, None] - b[None]).square().sum(-1).add(1e-300).sqrt() / ell
        return sigma2 * (1 + r + r**2 / 3) * torch.exp(-r)

    ell = module.covariance.log_lengthscale.exp()[0, 0]
    sigma2 = module.covariance.log_variance.exp()[0]
    Z = module.inducing[0]
    m = module.q_mean[0, 0]
    C = module.q_tril[0, 0].tril()
    L = torch.linalg.cholesky(k(Z, Z) + module.jitter * torch.eye(len(Z), dtype=Z.dtype))
    a = torch.linalg.solve_triangular(L, k(Z, x[None]), upper=False)[:, 0]
    v = sigma2 - a @ a + (C.T @ a).square().sum()
    return a @ m, v if variance_matters else v.detach()


@pytest.mark.parametrize("variance_matters", [True, False])
def test_probit_gradient_equals_the_closed_form(variance_matters):
    """log Φ(± μ/√(1 + v)), differentiated in x (Rasmussen and Williams 2006, eq. 3.25); it differs
    without ∂v/∂x."""
    problem = classes(n=20, n_classes=2)
    posterior = train_posterior(problem, gp(quadrature_nodes=60))
    x = problem.test.x
    y = problem.test.y
    answer = Attacked(posterior).answer(x, y, torch.Generator())
    error = 0.0
    for b in range(len(x)):
        leaf = x[b].clone().requires_grad_()
        mean, variance = literal_moments(posterior.module, leaf, variance_matters)
        log_p = torch.special.log_ndtr((2 * y[b, 0] - 1) * mean / (1 + variance).sqrt())
        (gradient,) = grad(log_p, leaf)
        assert float(answer.objective[b]) == pytest.approx(log_p.item(), abs=1e-5)
        error = max(
            error, float((answer.gradient[b] - gradient).abs().max() / gradient.abs().max())
        )
    assert error < 1e-3 if variance_matters else error > 1e-2


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gp_classifier", {"ard": True, "lengthscale": 0.7, "n_inducing": 8}),
        # through the conditional with an explicit gradient
        ("idgp", {"depth": 0, "n_inducing": 8}),
        ("idgp", {"depth": 1, "inner_dim": 2, "n_inducing": 8}),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_in_inputs_equals_finite_differences(name, settings, n_classes):
    """The samples of f are fixed, so that log p(y|x) is one function of x."""
    problem = classes(n=20, n_classes=n_classes)
    posterior = train_posterior(problem, component("model", name, **settings))
    x = problem.test.x[:5]
    y = problem.test.y[:5]
    h = 1e-5
    gradient = Attacked(posterior).input_gradient(x, y, generator(4))
    for j in range(x.shape[1]):
        step = torch.zeros_like(x)
        step[:, j] = h
        up, down = (
            Attacked(posterior).answer(x + s * step, y, generator(4)).objective for s in (1, -1)
        )
        assert_close(gradient[:, j], (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_classifier_equals_igp_with_a_sparse_posterior():
    problem = classes(n=20)
    shared = {
        "kernel": "matern32",
        "lengthscale": 0.7,
        "variance": 3.0,
        "hyperprior": None,
        "n_inducing": 8,
    }
    peer = component("model", "igp", **shared, posterior="sparse", ard="none")
    ends = [train_posterior(problem, model, 10) for model in (gp(**shared), peer)]
    assert_close(*(list(end.module.parameters()) for end in ends), rtol=0, atol=0)


def test_lengthscale_scales_with_the_units_of_the_inputs():
    problem = classes(n=30)
    assert_close(
        find_median_distance(problem.train.x), float(torch.pdist(problem.train.x).median())
    )
    small = train_posterior(problem, gp(lengthscale=None), 0)
    problem.train = replace(problem.train, x=255 * problem.train.x)
    large = train_posterior(problem, gp(lengthscale=None), 0)
    ratio = (
        large.module.covariance.log_lengthscale - small.module.covariance.log_lengthscale
    ).exp()
    assert_close(ratio.detach(), torch.full_like(ratio, 255.0))
    assert find_median_distance(torch.ones(3, 2)) == find_median_distance(torch.ones(1, 2)) == 1.0
