from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, normal
from support.series.particle_systems import Systems, force, k
from support.targets.known_targets import correlated, sampled
from torch.testing import assert_close

from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.repulsion import Interaction
from runner.execution.rng import Streams

S, L = 40, 5


def literal(
    target, steps: int, particles: int, eps: float, C: float, h: float, seed: int
) -> torch.Tensor:
    """The two lines of the docstring, pair by pair."""
    rng = Streams(seed)
    z = target.sample_prior(particles, rng.init)
    m = normal(rng.init, z.shape)
    for _ in range(steps):
        pushed = force(z, value_and_gradient(target, z, None)[1], h)
        K = torch.stack([torch.stack([k(a, b, h) for b in z]) for a in z])
        noise = (2 * eps * C / particles) ** 0.5 * normal(rng.noise, z.shape)
        m = m + eps / particles * (pushed - C * m) + noise
        z = z + eps / particles * torch.stack(
            [sum(K_il * m_l for K_il, m_l in zip(row, m, strict=True)) for row in K]
        )
    return z


def test_steps_are_algorithm_2_2_with_its_signs_mended_and_friction():
    keys = {"chains": 4, "step_size": 0.3, "friction": 0.7, "bandwidth": 0.9}
    fast = sampled("sgdm_r", correlated(), 6, seed=3, burn_in=5, thinning=1, **keys)
    assert_close(
        fast.draws[:, -1], literal(correlated(), 6, 4, 0.3, 0.7, 0.9, 3), rtol=1e-9, atol=1e-9
    )


def as_printed(steps: int, eps: float, h: float, particles: int = 6) -> torch.Tensor:
    """Algorithm 2.2 to the letter, H = −log π, from a start in the stationary law; the particles at
    its end."""
    target, rng = correlated(), Streams(0)
    z = target.sample_prior(particles, rng.init)
    m = normal(rng.init, z.shape)
    for _ in range(steps):
        zero = torch.zeros_like(m)
        attraction, gradient_H = -force(z, zero, h), -value_and_gradient(target, z, None)[1]
        K = torch.exp(-torch.cdist(z, z).square() / h)
        z, m = (
            z - eps / particles * (K @ m + attraction),
            m - eps / particles * (K @ gradient_H + attraction),
        )
    return z


def test_algorithm_2_2_as_printed_runs_away_from_the_modes():
    assert as_printed(400, 0.1, 2.0).abs().max() > 100


def systems_z(eta: float = 0.05, steps: int = 250, friction: float = 1.0) -> float:
    """Largest |z| of the moments of many independent systems that start in their stationary law.

    Friction counts per L: S systems side by side leave each a step η, and friction C."""
    target = Systems(S, L)
    keys = {"chains": S * L, "step_size": S * L * eta, "friction": friction, "bandwidth": 2.0}
    return target.z(sampled("sgdm_r", target, steps, burn_in=50, thinning=10, **keys))


def test_stationary_moments_are_those_of_the_target():
    assert systems_z() < 4


@pytest.mark.parametrize("mutant", ["attraction", "correction of z too"])
def test_mutants_fail_the_same_check(mutant, monkeypatch):
    correction, averaged = Interaction.correction, Interaction.average
    if mutant == "attraction":
        monkeypatch.setattr(Interaction, "correction", lambda self: -correction(self))
    else:  # Γ in both lines, as printed: here it joins both averages, and leaves the force as it is
        monkeypatch.setattr(
            Interaction, "average", lambda self, x: averaged(self, x) + correction(self)
        )
        monkeypatch.setattr(Interaction, "correction", lambda self: 0.0)
    assert systems_z() > 6


def test_without_friction_noise_is_neither_added_nor_taken():
    target = correlated()
    keys = {
        "chains": 4,
        "step_size": 0.1,
        "friction": 0.0,
        "bandwidth": 2.0,
        "burn_in": 49,
        "thinning": 1,
    }
    one, two = (sampled("sgdm_r", target, 50, seed=3, **keys) for _ in range(2))
    assert torch.equal(one.draws, two.draws)
    assert_close(one.draws[:, -1], literal(target, 50, 4, 0.1, 0.0, 2.0, 3), rtol=1e-8, atol=1e-8)


def test_friction_that_reverses_the_momentum_is_refused():
    with pytest.raises(
        ValidationError,
        match=r"step_size: at 5 friction reverses momenta; use a value below .* = 4",
    ):
        component("inference", "sgdm_r", chains=8, friction=2.0, step_size=5.0)
