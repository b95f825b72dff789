"""Samplers with repulsive particles: literal steps over pairs, exact moments of many systems, and
the effect of deliberate mistakes."""

import math

import pytest
import torch
from support.runs.configured import component, normal
from support.series.particle_systems import Systems, force, gram
from support.targets.known_targets import F64, correlated_gaussian, sample_target, walk
from torch.testing import assert_close

from components.inference.log_joint import value_and_gradient
from components.maths.particles.interactions import Interaction
from runner.execution.rng import Streams

S = 40
L = 5
BANDWIDTH = 0.9


def gradient(target, z):
    return value_and_gradient(target, z, None)[1]


# equations, pair by pair
def sgld_r(target, steps, rng, step_size, jitter):
    """Algorithm 2.1, its noise by (2.7), with the sign of the mathematics."""
    z = target.sample_prior(4, rng.init)
    for _ in range(steps):
        covariance = gram(z, BANDWIDTH) + jitter * torch.eye(4, dtype=F64)
        factor = torch.linalg.cholesky(2 * step_size / 4 * covariance)
        eta = factor @ normal(rng.noise, z.shape)
        z = z + step_size / 4 * force(z, gradient(target, z), BANDWIDTH) + eta
    return z


def sgdm_r(target, steps, rng, step_size, friction):
    """The two update lines of the docstring: Algorithm 2.2 with its signs corrected, and
    friction."""
    z = target.sample_prior(4, rng.init)
    m = normal(rng.init, z.shape)
    for _ in range(steps):
        drift = force(z, gradient(target, z), BANDWIDTH) - friction * m
        noise = (2 * step_size * friction / 4) ** 0.5 * normal(rng.noise, z.shape)
        m = m + step_size / 4 * drift + noise
        z = z + step_size / 4 * gram(z, BANDWIDTH) @ m
    return z


def adam_nr(target, steps, rng, step_size, beta1, beta2, damping, adapt):
    """The three update lines of the docstring."""
    z = target.sample_prior(4, rng.init)
    m = torch.zeros_like(z)
    v = torch.zeros_like(z)
    for t in range(1, steps + 1):
        slope = gradient(target, z)
        v = beta2 * v + (1 - beta2) * slope**2
        M = (v / (1 - beta2**t)).sqrt() + damping
        noise = (2 * 4 / step_size * M).sqrt() * normal(rng.noise, z.shape)
        m = beta1 * m + (1 - beta1) * (force(z, slope, BANDWIDTH) + noise)
        z = z + step_size / 4 * gram(z, BANDWIDTH) @ (m / M)
    return z


def svgd(target, steps, rng, step_size):
    """Equation (2.4) with the sign of Liu and Wang."""
    z = target.sample_prior(4, rng.init)
    for _ in range(steps):
        z = z + step_size / 4 * force(z, gradient(target, z), BANDWIDTH)
    return z


def svgd_adagrad(target, steps, rng, step_size, scaling, beta2):
    """Each coordinate scaled by the root of its averaged squares."""
    z = target.sample_prior(4, rng.init)
    squares = None
    for _ in range(steps):
        phi = force(z, gradient(target, z), BANDWIDTH) / 4
        squares = phi**2 if squares is None else beta2 * squares + (1 - beta2) * phi**2
        z = z + step_size * phi / (1e-6 + squares.sqrt())
    return z


@pytest.mark.parametrize(
    ("equations", "steps", "keys"),
    [
        (sgld_r, 6, {"step_size": 0.3, "jitter": 1e-8}),
        (sgdm_r, 6, {"step_size": 0.3, "friction": 0.7}),
        (sgdm_r, 50, {"step_size": 0.1, "friction": 0.0}),
        (
            adam_nr,
            6,
            {"step_size": 0.1, "beta1": 0.8, "beta2": 0.95, "damping": 1e-3, "adapt": "always"},
        ),
        (svgd, 6, {"step_size": 0.2}),
        (svgd_adagrad, 6, {"step_size": 0.2, "scaling": "adagrad", "beta2": 0.8}),
    ],
)
def test_steps_match_equations(equations, steps, keys):
    name = "svgd" if equations is svgd_adagrad else equations.__name__
    settings = keys | {"chains": 4, "bandwidth": BANDWIDTH, "burn_in": steps - 1, "thinning": 1}
    fast = sample_target(name, correlated_gaussian(), steps, seed=3, **settings)
    slow = equations(correlated_gaussian(), steps, Streams(3), **keys)
    assert_close(fast.draws[:, -1], slow, rtol=1e-8, atol=1e-8)


# stationary moments of many systems
# step η of a system, number of steps, other keys; friction counts per L
SYSTEMS = {
    "sgld_r": (0.02, 250, {"burn_in": 50}),
    "sgdm_r": (0.05, 250, {"burn_in": 50, "friction": 1.0}),
    # masses are fixed after burn-in
    "adam_nr": (0.01, 450, {"burn_in": 200, "adapt": "burn_in", "beta2": 0.99}),
}


def sample_systems(target, name, eta, steps, **keys):
    n = S * L
    settings = {"chains": n, "step_size": n * eta, "bandwidth": 2.0, "thinning": 10}
    return sample_target(name, target, steps, **settings | keys)


def systems_z(name):
    """Largest |z| of the moments of independent systems that start in their stationary
    distribution."""
    target = Systems(S, L)
    eta, steps, keys = SYSTEMS[name]
    return target.z(sample_systems(target, name, eta, steps, **keys))


@pytest.mark.parametrize("name", SYSTEMS)
def test_stationary_moments_match_target(name):
    assert systems_z(name) < 4


CORRECTION = Interaction.correction
NOISE = Interaction.noise
AVERAGE = Interaction.average
MUTANTS = {
    "attraction": {"correction": lambda self: -CORRECTION(self)},
    "uncorrelated": {"noise": lambda self, g, j: NOISE(Interaction(self.theta, None, None), g, j)},
    "half the noise": {"noise": lambda self, g, j: (NOISE(self, g, j)[0] / math.sqrt(2), j)},
    # Γ in both lines, as published: it then enters both averages, and the force is unchanged
    "correction of z too": {
        "average": lambda self, x: AVERAGE(self, x) + CORRECTION(self),
        "correction": lambda self: 0.0,
    },
}


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("sgld_r", "attraction"),
        ("sgld_r", "uncorrelated"),
        ("sgld_r", "half the noise"),
        ("sgdm_r", "attraction"),
        ("sgdm_r", "correction of z too"),
        ("adam_nr", "attraction"),
    ],
)
def test_mutants_fail_moment_check(name, mutant, monkeypatch):
    for method, wrong in MUTANTS[mutant].items():
        monkeypatch.setattr(Interaction, method, wrong)
    assert systems_z(name) > 6


def test_particles_with_common_start_reach_target():
    target = Systems(S, L, start_sd=0.05, start_mean=1.0)
    means = target.means(sample_systems(target, "sgld_r", 0.05, 300, burn_in=150), 2).mean(1)
    # 0.02: bias of the step
    assert means.mean() == pytest.approx(1, abs=0.02 + 4 * float(means.std()) / S**0.5)


def test_masses_are_fixed_after_burn_in():
    adam = component("inference", "adam_nr", adapt="burn_in", burn_in=3, chains=4)
    masses = [float(info["preconditioner"]) for _, info in walk(adam, correlated_gaussian(), 6)]
    assert len(set(masses[:3])) == 3
    assert len(set(masses[2:])) == 1


@pytest.mark.slow
def test_adaptive_masses_have_small_bias():
    """β₂ = 0.999 as in Adam: the neglected terms stay below a tenth of the variance here."""
    target = Systems(S, L)
    draws = sample_systems(target, "adam_nr", 0.01, 1500, burn_in=500, adapt="always")
    assert target.means(draws, 2).mean() == pytest.approx(1, abs=0.1)


def test_svgd_underestimates_spread():
    """Proposition 2.3."""
    target = Systems(S, L)
    draws = sample_systems(target, "svgd", 0.1, 400, burn_in=399, thinning=1)
    assert target.means(draws, 2).mean() < 0.7
    assert target.z(draws) > 20
