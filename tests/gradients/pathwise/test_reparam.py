"""The reparameterisation gradient compared with an exact gradient, and broken variants that the
same test detects."""

import pytest
import torch
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
    estimator = Reparam(name="reparam", n_samples=2)
    rng = Streams(0)
    results = []
    for _ in range(DRAWS):
        rows = torch.randperm(20, generator=rng.batches)[:10]
        batch = problem.train.part(rows, 2.0 if scaled else 1.0)
        gradients, terms, state = estimator.estimate(
            module, batch, rng, estimator.init(module, rng)
        )
        assert state is None
        assert set(terms) == {"elbo"}
        results.append(torch.cat([g.flatten() for g in gradients]))
    draws = torch.stack(results)
    flat = torch.cat([g.flatten() for g in exact])
    return float(((draws.mean(0) - flat) / (draws.std(0) / DRAWS**0.5)).abs().max())


def test_reparam_gradient_is_unbiased():
    assert Reparam.unbiased
    assert largest_z() < 4.2  # largest of 27 parameters: exceeded by chance once in a thousand


def divergence(m, s):
    return 0.5 * (m.square() + s.square() - 1 - 2 * s.log()).sum(-1)


def wrong_sign_of_kl(module, batch, noise):
    return AutoEncoder.elbo_rows(module, batch, noise) + 2 * divergence(*module.encode(batch))


def detached_guide(module, batch, noise):
    m, s = module.encode(batch)
    return module.generative.log_prob(batch.x, (m + s * noise).detach()) - divergence(m, s)


def half_the_noise(module, batch, noise):
    return AutoEncoder.elbo_rows(module, batch, 0.5 * noise)


@pytest.mark.parametrize("spoil", [wrong_sign_of_kl, detached_guide, half_the_noise])
def test_broken_gradients_are_detected(spoil):
    assert largest_z(spoil) > 8


def test_missing_scale_is_detected():
    assert largest_z(scaled=False) > 8


def test_more_samples_reduce_variance():
    problem = real_rows(n=20)
    module = ppca(problem, exact_guide=False)

    def variance(n_samples):
        estimator = Reparam(name="reparam", n_samples=n_samples)
        rng = Streams(1)
        draws = [estimator.estimate(module, problem.train, rng, None)[0] for _ in range(300)]
        return float(torch.stack([torch.cat([g.flatten() for g in d]) for d in draws]).var(0).sum())

    assert variance(1) / variance(8) == pytest.approx(8, rel=0.3)
