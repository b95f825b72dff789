from __future__ import annotations

import math

import pytest
import torch
from support.runs.configured import normal
from support.series.particle_systems import Systems, force, k
from support.targets.known_targets import F64, correlated, sampled

from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.repulsion import Interaction
from runner.execution.rng import Streams

S, L = 40, 5


def literal(
    target, steps: int, particles: int, eps: float, h: float, jitter: float, seed: int
) -> torch.Tensor:
    """Algorithm 2.1 pair by pair, its noise by (2.7), with the sign of the mathematics."""
    rng = Streams(seed)
    z = target.sample_prior(particles, rng.init)
    for _ in range(steps):
        gradient = value_and_gradient(target, z, None)[1]
        K = torch.stack([torch.stack([k(a, b, h) for b in z]) for a in z])
        factor = torch.linalg.cholesky(
            2 * eps / particles * (K + jitter * torch.eye(particles, dtype=F64))
        )
        eta = factor @ normal(rng.noise, z.shape)
        z = z + eps / particles * force(z, gradient, h) + eta
    return z


def test_steps_are_algorithm_2_1():
    keys = {"chains": 4, "step_size": 0.3, "bandwidth": 0.9, "jitter": 1e-8}
    fast = sampled("sgld_r", correlated(), 6, seed=3, burn_in=5, thinning=1, **keys)
    torch.testing.assert_close(
        fast.draws[:, -1], literal(correlated(), 6, 4, 0.3, 0.9, 1e-8, 3), rtol=1e-9, atol=1e-9
    )


def systems_z(eta: float = 0.02, steps: int = 250) -> float:
    """Largest |z| of the moments of many independent systems that start in their stationary law."""
    target = Systems(S, L)
    keys = {
        "chains": S * L,
        "step_size": S * L * eta,
        "bandwidth": 2.0,
        "burn_in": 50,
        "thinning": 10,
    }
    return target.z(sampled("sgld_r", target, steps, **keys))


def test_stationary_moments_are_those_of_the_target():
    assert systems_z() < 4


@pytest.mark.parametrize("mutant", ["attraction", "uncorrelated", "half the noise"])
def test_mutants_fail_the_same_check(mutant, monkeypatch):
    correction, noise = Interaction.correction, Interaction.noise
    if mutant == "attraction":
        monkeypatch.setattr(Interaction, "correction", lambda self: -correction(self))
    elif mutant == "uncorrelated":
        alone = lambda self, g, j: noise(Interaction(self.theta, None, None), g, j)  # noqa: E731
        monkeypatch.setattr(Interaction, "noise", alone)
    else:
        monkeypatch.setattr(
            Interaction, "noise", lambda self, g, j: (noise(self, g, j)[0] / math.sqrt(2), j)
        )
    assert systems_z() > 6


def test_particles_that_start_together_end_as_the_target():
    target = Systems(S, L, start_sd=0.05, start_mean=1.0)
    keys = {"chains": S * L, "step_size": S * L * 0.05, "bandwidth": 2.0, "thinning": 10}
    means = target.means(sampled("sgld_r", target, 300, burn_in=150, **keys), 2).mean(1)
    # 0.02: bias of the step
    assert float(means.mean()) == pytest.approx(1, abs=0.02 + 4 * float(means.std()) / S**0.5)


@pytest.mark.slow
def test_bias_shrinks_at_first_order_in_the_step():
    """Bias of the variance / η tends to a constant, here about 0.4."""
    systems, slope = 40, {}
    for eta in (0.4, 0.2, 0.1):
        target = Systems(systems, L)
        keys = {
            "chains": systems * L,
            "step_size": systems * L * eta,
            "bandwidth": 2.0,
            "burn_in": 100,
            "thinning": 5,
        }
        means = target.means(sampled("sgld_r", target, 1500, **keys), 2)
        slope[eta] = (float(means.mean()) - 1) / eta
    assert slope[0.4] > slope[0.2] > slope[0.1] > 0.2
    assert slope[0.2] - slope[0.1] < slope[0.4] - slope[0.2] + 0.1
