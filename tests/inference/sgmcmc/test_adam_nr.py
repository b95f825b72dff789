from __future__ import annotations

import pytest
import torch
from support.runs.configured import component, generator, normal
from support.series.particle_systems import Systems, force, k
from support.targets.known_targets import F64, correlated, sampled
from torch.testing import assert_close

from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.repulsion import Interaction
from runner.execution.rng import Streams

S, L = 40, 5


def literal(
    target,
    steps: int,
    particles: int,
    eps: float,
    b1: float,
    b2: float,
    lam: float,
    h: float,
    seed: int,
):
    """The three lines of the docstring, pair by pair."""
    rng = Streams(seed)
    z = target.sample_prior(particles, rng.init)
    m, v = torch.zeros_like(z), torch.zeros_like(z)
    for t in range(1, steps + 1):
        gradient = value_and_gradient(target, z, None)[1]
        v = b2 * v + (1 - b2) * gradient**2
        M = (v / (1 - b2**t)).sqrt() + lam
        noise = (2 * particles / eps * M).sqrt() * normal(rng.noise, z.shape)
        m = b1 * m + (1 - b1) * (force(z, gradient, h) + noise)
        z = torch.stack(
            [
                z_i
                + eps
                / particles
                * sum(k(z_l, z_i, h) * m_l / M_l for z_l, m_l, M_l in zip(z, m, M, strict=True))
                for z_i in z
            ]
        )
    return z


def test_steps_are_adam_with_noise_and_repulsion():
    keys = {
        "chains": 4,
        "step_size": 0.1,
        "beta1": 0.8,
        "beta2": 0.95,
        "damping": 1e-3,
        "bandwidth": 0.9,
    }
    fast = sampled(
        "adam_nr", correlated(), 6, seed=3, burn_in=5, thinning=1, adapt="always", **keys
    )
    slow = literal(correlated(), 6, 4, 0.1, 0.8, 0.95, 1e-3, 0.9, 3)
    assert_close(fast.draws[:, -1], slow, rtol=1e-9, atol=1e-9)


def test_a_step_is_the_recipe_with_the_curl_matrix_of_the_kernel():
    """One Euler step of size h for (z, r): r by −(D + Q)∇H + Γ and N(0, 2hD), then z by the new r
    and the old K."""
    n, P, eps, b1, h_kernel = 4, 2, 0.1, 0.8, 0.9
    g = generator(0)
    target = correlated()
    z, m, xi = (normal(g, n, P) for _ in range(3))
    M = torch.rand(n, P, generator=g, dtype=F64) + 0.5
    gradient = value_and_gradient(target, z, None)[1]
    K = torch.stack([torch.stack([k(a, b, h_kernel) for b in z]) for a in z])
    step = (eps * (1 - b1) / n) ** 0.5
    r, D = m * step / (1 - b1), (1 - b1) / step * M
    r = r + step * (force(z, gradient, h_kernel) - D * r / M) + (2 * step * D).sqrt() * xi
    recipe = z + step * K @ (r / M)
    m = b1 * m + (1 - b1) * (force(z, gradient, h_kernel) + (2 * n / eps * M).sqrt() * xi)
    assert_close(z + eps / n * K @ (m / M), recipe)


def systems_z(eta: float = 0.01) -> float:
    """Largest |z| of the moments of many independent systems whose masses stand still after
    burn-in."""
    target = Systems(S, L)
    keys = {
        "chains": S * L,
        "step_size": S * L * eta,
        "bandwidth": 2.0,
        "adapt": "burn_in",
        "beta2": 0.99,
    }
    return target.z(sampled("adam_nr", target, 450, burn_in=200, thinning=10, **keys))


def test_stationary_moments_are_those_of_the_target():
    assert systems_z() < 4


def test_attraction_fails_the_same_check(monkeypatch):
    correction = Interaction.correction
    monkeypatch.setattr(Interaction, "correction", lambda self: -correction(self))
    assert systems_z() > 6


def test_masses_stand_still_after_burn_in():
    adam, rng = component("inference", "adam_nr", adapt="burn_in", burn_in=3, chains=4), Streams(0)
    state, seen = adam.init(correlated(), None, rng), []
    for _ in range(6):
        state, info = adam.step(state, None, rng)
        seen.append(float(info["preconditioner"]))
    assert len(set(seen[:3])) == 3
    assert len(set(seen[2:])) == 1


@pytest.mark.slow
def test_masses_that_follow_the_chain_bias_it_little():
    """β₂ = 0.999 as in Adam: what is neglected stays below a tenth of the variance here."""
    target = Systems(S, L)
    keys = {"chains": S * L, "step_size": S * L * 0.01, "bandwidth": 2.0, "adapt": "always"}
    means = target.means(sampled("adam_nr", target, 1500, burn_in=500, thinning=10, **keys), 2)
    assert float(means.mean()) == pytest.approx(1, abs=0.1)
