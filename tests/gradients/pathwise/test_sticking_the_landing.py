"""The path derivative: 0 at every draw if q is the posterior, and unbiased otherwise."""

import pytest
import torch
from support.runs.configured import build_model, component, generator
from support.small.small_problems import real
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from support.targets.pathwise_models import estimates, flat, z_score
from torch.autograd import grad
from torch.testing import assert_close

from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import GlobalGaussian
from runner.execution.rng import Streams

STICKING = component("gradient", "sticking_the_landing")


def linear_regression(at_posterior, noise="shared"):
    problem = real(n=24, n_tasks=1, missing=0.0)
    model = build_model("linear_regression", problem, noise=0.25, prior_scale=2.0)
    coefficients = model.coefficients(problem.train)
    L = torch.linalg.cholesky(model.noise * coefficients.covariance)
    q = GlobalGaussian(RowwiseLogJoint(model), coefficients.m, 1.0, True, noise)
    with torch.no_grad():
        q.log_std.copy_(L.diagonal().log())
        q.lower.copy_(L[tuple(torch.tril_indices(*L.shape, -1))])
        if not at_posterior:
            q.mean.add_(0.1)
            q.log_std.add_(0.3)
    return problem, model, q


@pytest.mark.parametrize("noise", ["shared", "rows"])
def test_gradient_is_0_at_the_posterior(noise):
    problem, model, q = linear_regression(True)
    evidence = model.log_evidence(problem.train)
    for seed in range(5):
        gradients, terms, _ = STICKING.estimate(q, problem.train, Streams(seed), None)
        assert flat(gradients).abs().max() < 1e-9
        assert_close(terms["elbo"], evidence)


def test_guide_gradient_is_0_at_the_posterior():
    problem = real_rows(n=20)
    module = ppca(problem, exact_guide=True)
    reparam = component("gradient", "reparam")
    guide = list(module.guide.parameters())
    for seed in range(5):
        for estimator, zero in ((STICKING, True), (reparam, False)):
            gradients, _, _ = estimator.estimate(module, problem.train, Streams(seed), None)
            of_guide = [
                g
                for g, p in zip(gradients, module.parameters(), strict=True)
                if any(p is q for q in guide)
            ]
            assert (float(flat(of_guide).abs().max()) < 1e-9) == zero


@pytest.mark.parametrize("steps", [300, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("which", ["guide", "posterior"])
def test_sticking_the_landing_is_unbiased(which, steps):
    """50 draws per step."""
    if which == "guide":
        problem = real_rows(n=20)
        module = ppca(problem, exact_guide=False)
        bound = exact_elbo(module, problem.train.x)
    else:
        problem, _, module = linear_regression(False)
        noise = torch.cat([e := torch.randn(10**5, 1, 4, generator=generator(1)).double(), -e])
        rows = module.elbo_rows(problem.train, noise.expand(-1, 24, -1))
        bound = rows.mean(0).sum() - module.kl()
    estimator = component("gradient", "sticking_the_landing", n_samples=50)
    draws = estimates(estimator, module, problem.train, steps)
    assert z_score(draws, flat(grad(bound, list(module.parameters())))) < 4.2
