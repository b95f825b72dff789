"""The reparameterisation gradient against an exact one, and broken ones that the same test
catches."""

import pytest
import torch
from support.runs.configured import double, normal
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from torch.autograd import grad

from components.gradients.pathwise.reparam import Reparam
from components.models.latent.vae import AutoEncoder
from runner.execution.rng import Streams

DRAWS = 1500


def largest_z(spoil=None, scaled=True):
    """Largest |mean − exact| in standard errors over all parameters, of gradients of random
    minibatches."""
    problem = real_rows(n=20)
    module = ppca(problem, exact_guide=False)
    module.generative.log_noise = torch.nn.Parameter(module.generative.log_noise)
    exact = grad(exact_elbo(module, problem.train.x), list(module.parameters()))
    if spoil:
        module.elbo_rows = lambda batch, noise: spoil(module, batch, noise)
    estimator, rng = Reparam(name="reparam", n_samples=2), Streams(0)
    found = []
    for _ in range(DRAWS):
        rows = torch.randperm(20, generator=rng.batches)[:10]
        batch = problem.train.part(rows, 2.0 if scaled else 1.0)
        gradients, terms, state = estimator.estimate(
            module, batch, rng, estimator.init(module, rng)
        )
        assert state is None
        assert set(terms) == {"elbo"}
        found.append(torch.cat([g.flatten() for g in gradients]))
    draws = torch.stack(found)
    flat = torch.cat([g.flatten() for g in exact])
    return float(((draws.mean(0) - flat) / (draws.std(0) / DRAWS**0.5)).abs().max())


def test_unbiased():
    assert Reparam.unbiased
    assert largest_z() < 4.2  # of 27 parameters: exceeded by chance once in a thousand


def wrong_sign_of_kl(module, batch, noise):
    m, s = module.encode(batch)
    divergence = 0.5 * (m.square() + s.square() - 1 - 2 * s.log()).sum(-1)
    return AutoEncoder.elbo_rows(module, batch, noise) + 2 * divergence


def detached_guide(module, batch, noise):
    m, s = module.encode(batch)
    divergence = 0.5 * (m.square() + s.square() - 1 - 2 * s.log()).sum(-1)
    return module.generative.log_prob(batch.x, (m + s * noise).detach()) - divergence


def half_the_noise(module, batch, noise):
    return AutoEncoder.elbo_rows(module, batch, 0.5 * noise)


@pytest.mark.parametrize("spoil", [wrong_sign_of_kl, detached_guide, half_the_noise])
def test_broken_ones_are_caught(spoil):
    assert largest_z(spoil) > 8


def test_a_forgotten_scale_is_caught():
    assert largest_z(scaled=False) > 8


def test_more_samples_less_variance():
    problem = real_rows(n=20)
    module = ppca(problem, exact_guide=False)

    def variance(n_samples):
        estimator, rng = Reparam(name="reparam", n_samples=n_samples), Streams(1)
        draws = [estimator.estimate(module, problem.train, rng, None)[0] for _ in range(300)]
        return float(torch.stack([torch.cat([g.flatten() for g in d]) for d in draws]).var(0).sum())

    assert variance(1) / variance(8) == pytest.approx(8, rel=0.3)


def test_what_rows_share_is_counted_once():
    """q(θ) = N(m, s²) of one mean that all rows share: E ℒ = −½ N (s² + Σ (x − m)²/N) − KL,
    whatever the batch."""

    class SharedMean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m, self.log_s = (torch.nn.Parameter(double(v)) for v in (0.3, -0.5))

        def draw_noise(self, batch, n_samples, generator):
            return normal(generator, n_samples, 1, 1)

        def elbo_rows(self, batch, noise):
            return -0.5 * (batch.x[:, 0] - self.m - self.log_s.exp() * noise[..., 0]).square()

        def kl(self):
            return 0.5 * (self.m.square() + (2 * self.log_s).exp() - 1) - self.log_s

    problem, module, rng = real_rows(n=20), SharedMean(), Streams(2)
    x = problem.train.x[:, 0]
    expected = -0.5 * ((x - module.m).square().sum() + 20 * (2 * module.log_s).exp()) - module.kl()
    exact = torch.stack(grad(expected, list(module.parameters())))
    estimator, found = Reparam(name="reparam", n_samples=3), []
    for _ in range(DRAWS):
        rows = torch.randperm(20, generator=rng.batches)[:5]
        gradients, terms, _ = estimator.estimate(module, problem.train.part(rows, 4.0), rng, None)
        assert set(terms) == {"elbo", "kl"}
        found.append(torch.stack(gradients))
    draws = torch.stack(found)
    assert ((draws.mean(0) - exact) / (draws.std(0) / DRAWS**0.5)).abs().max() < 4
