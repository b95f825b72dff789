"""The path derivative: 0 where q is the posterior, at every draw, and unbiased where it is not."""

import pytest
import torch
from support.runs.configured import build_model, component, generator
from support.small.small_problems import real
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from torch.autograd import grad
from torch.testing import assert_close

from components.inference.variational.global_gaussian import GlobalGaussian, RowwiseLogJoint
from runner.execution.rng import Streams

STICKING = component("gradient", "sticking_the_landing")
MORE = component("gradient", "sticking_the_landing", n_samples=50)


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


def linear_regression(at_posterior, noise="shared"):
    problem = real(n=24, n_tasks=1, missing=0.0)
    model = build_model("linear_regression", problem, noise=0.25, prior_scale=2.0)
    known = model.coefficients(problem.train)
    L = torch.linalg.cholesky(model.noise * known.covariance)
    q = GlobalGaussian(RowwiseLogJoint(model), known.m, 1.0, True, noise)
    with torch.no_grad():
        q.log_std.copy_(L.diagonal().log())
        q.lower.copy_(L[tuple(torch.tril_indices(*L.shape, -1))])
        if not at_posterior:
            q.mean.add_(0.1)
            q.log_std.add_(0.3)
    return problem, model, q


@pytest.mark.parametrize("noise", ["shared", "rows"])
def test_it_is_0_at_every_draw_where_q_is_the_posterior(noise):
    problem, model, q = linear_regression(True)
    evidence = model.log_evidence(problem.train)
    for seed in range(5):
        gradients, terms, _ = STICKING.estimate(q, problem.train, Streams(seed), None)
        assert flat(gradients).abs().max() < 1e-9
        assert_close(terms["elbo"], evidence)


def test_that_of_a_guide_is_0_where_it_is_the_posterior():
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


def largest_z(steps):
    """Over two Gaussian models, of 50 draws a step."""
    problem = real_rows(n=20)
    module = ppca(problem, exact_guide=False)
    exact = [flat(grad(exact_elbo(module, problem.train.x), list(module.parameters())))]
    labelled, _, q = linear_regression(False)
    noise = torch.cat([e := torch.randn(10**5, 1, 4, generator=generator(1)).double(), -e])
    bound = q.elbo_rows(labelled.train, noise.expand(-1, 24, -1)).mean(0).sum() - q.kl()
    exact.append(flat(grad(bound, list(q.parameters()))))
    worst = []
    for (one, batch), known in zip(
        ((module, problem.train), (q, labelled.train)), exact, strict=True
    ):
        rng = Streams(0)
        draws = torch.stack([flat(MORE.estimate(one, batch, rng, None)[0]) for _ in range(steps)])
        worst.append(float(((draws.mean(0) - known) / (draws.std(0) / steps**0.5)).abs().max()))
    return max(worst)


def test_unbiased():
    assert STICKING.unbiased
    assert largest_z(300) < 4.2


@pytest.mark.slow
def test_unbiased_in_many_draws():
    assert largest_z(2000) < 4.2  # 10⁵ draws
