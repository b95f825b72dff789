"""The semi-implicit family compared with the Gaussian of an affine family, and chains that leave a
density invariant."""

import pytest
import torch
from support.runs.configured import F64, normal
from support.targets.affine_families import BIAS, COVARIANCE, STD, affine, target
from support.targets.known_targets import z_score
from torch.distributions import MultivariateNormal, Normal

from components.inference.semi_implicit.transitions import adapt_step_size, iterate
from runner.execution.rng import Streams


def test_pair_densities_match_definition():
    _, state, rng = affine("sivi")
    q = state.q
    z, means = (normal(rng.noise, n, 2) for n in (4, 3))
    with torch.no_grad():
        expected = torch.stack([Normal(m, STD).log_prob(z).sum(1) for m in means], 1)
        assert torch.allclose(q.log_pairs(z, means), expected, rtol=1e-12)
        assert torch.allclose(q.log_conditional(z[:3], means), expected[:3].diagonal(), rtol=1e-12)
        # squares of large numbers would lose the difference
        far = q.log_pairs(z + 1e4, means + 1e4)
        assert torch.allclose(far, expected, rtol=1e-6)


def test_affine_draws_have_known_moments():
    _, state, rng = affine("sivi")
    with torch.no_grad():
        _, mean, z = state.q.sample(20_000, rng.noise)
    assert z_score(z, BIAS).abs().max() < 4
    assert z_score(mean, BIAS).abs().max() < 4
    products = torch.einsum("sp,sq->spq", z - BIAS, z - BIAS)
    assert z_score(products, COVARIANCE).abs().max() < 4
    begun = affine("sivi")[0].init(target(), None, Streams(0))
    assert torch.equal(begun.q.mean(torch.zeros(1, 2, dtype=F64))[0], torch.zeros(2, dtype=F64))


def test_surrogate_tends_from_conditional_to_marginal():
    _, state, rng = affine("sivi")
    q = state.q
    with torch.no_grad():
        _, mean, z = q.sample(5, rng.noise)
        none = q.log_surrogate(z, mean, q.mean(q.mixing(0, rng.noise)))
        assert torch.allclose(none, q.log_conditional(z, mean))
        exact = MultivariateNormal(BIAS, COVARIANCE).log_prob(z)
        many = q.log_surrogate(z, mean, q.mean(q.mixing(400_000, rng.noise)))
        assert torch.allclose(many, exact, atol=0.03)
        others = q.mean(q.mixing(3, rng.noise))
        log_q = q.log_surrogate(z, mean, others)
    for i in range(5):
        total = sum(Normal(m, STD).log_prob(z[i]).sum().exp() for m in [mean[i], *others])
        assert float(log_q[i]) == pytest.approx(float((total / 4).log()), rel=1e-10)


@pytest.mark.parametrize("eps", [0.3, 1.2])
def test_iterations_leave_target_invariant(eps):
    model = target()
    generator = torch.Generator().manual_seed(0)
    factor = torch.linalg.cholesky(model.covariance)
    start = model.mean + normal(generator, 4000, 2) @ factor.T
    states, rate = iterate(model, None, start, 3, 2, eps, generator)
    assert states.shape == (3, 4000, 2)
    assert (0.99 if eps == 0.3 else 0.5) > (1 - rate) > 0
    for theta in states:
        assert z_score(theta, model.mean).abs().max() < 4
        centred = theta - model.mean
        assert (
            z_score(torch.einsum("sp,sq->spq", centred, centred), model.covariance).abs().max() < 4
        )
    assert (states[2] != start).any(1).double().mean() > 0.8


def test_steps_adapt_to_target_rate():
    assert adapt_step_size(0.5, torch.tensor(0.9), 0.9) == pytest.approx(0.5)
    assert (
        adapt_step_size(0.5, torch.tensor(0.2), 0.9)
        < 0.5
        < adapt_step_size(0.5, torch.tensor(1.0), 0.9)
    )
