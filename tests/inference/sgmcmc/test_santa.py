"""Santa: a literal update, exact moments for a fixed preconditioner, the effect of mistakes, and
refinement as an optimizer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from support.runs.configured import component, defaults, double, normal
from support.targets.known_targets import (
    ExactGamma,
    correlated_gaussian,
    moment_z,
    run_chains,
)
from support.targets.recipe import F64, PriorOfTwo, gradient, mutate_component
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.sgmcmc import santa
from runner.execution.rng import Streams

KEYS: dict[str, Any] = {
    "chains": 3,
    "step_size": 0.02,
    "averaging": 0.7,
    "damping": 0.3,
    "friction": 1.2,
}


class Quartic(PriorOfTwo):
    def log_prior(self, theta):
        a, b = theta.unbind(1)
        return -0.25 * a**4 - 0.5 * (b - a) ** 2


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("correction", [True, False])
def test_step_matches_published_algorithm(correction, refine):
    """Coordinate by coordinate, at the temperature A tᵞ."""
    A = 2.0
    annealing = 0.5
    sigma = 0.7
    eta = 0.02
    explored = 4
    keys = KEYS | {"coldness": A, "annealing": annealing, "burn_in": explored, "thinning": 1}
    method = component(
        "inference", "santa", **keys, refine=refine, correction=correction, adapt="always"
    )
    rng = Streams(0)
    draws = Streams(0).noise
    state = method.init(Quartic(), None, rng)
    assert_close(state.alpha, torch.full((3, 2), eta**0.5 * 1.2, dtype=F64))
    for t in range(1, 8):
        after, info = method.step(state, None, rng)
        zeta = normal(draws, (3, 2))
        beta = A * t**annealing
        explores = t <= explored or not refine
        assert info["temperature"] == pytest.approx(1 / beta if explores else 0.0)
        for k in range(3):
            f = gradient(Quartic().U, state.theta[k])  # of the potential
            for j in range(2):
                v = sigma * float(state.v[k, j]) + (1 - sigma) * float(f[j]) ** 2
                g = 1 / math.sqrt(0.3 + math.sqrt(v / (1 - sigma**t)))
                old = (
                    g
                    if t == 1
                    else 1
                    / math.sqrt(0.3 + math.sqrt(float(state.v[k, j]) / (1 - sigma ** (t - 1))))
                )
                u = float(state.u[k, j])
                alpha = float(state.alpha[k, j])
                new = 0.0
                if explores:
                    alpha += u * u - eta / beta
                    new = math.sqrt(2 * eta**1.5 / beta * old) * float(zeta[k, j])
                    square = max(u * u, 0.01 * eta / beta)
                    if correction:
                        new += eta / beta * (1 - old / g) * u / square
                else:
                    alpha = min(max(alpha, math.sqrt(eta) * 1.2), 1.0)
                new += (1 - alpha) * u - eta * g * float(f[j])
                theta = float(state.theta[k, j]) + g * new
                actual = [x[k, j].item() for x in (after.v, after.alpha, after.u, after.theta)]
                assert actual == pytest.approx([v, alpha, new, theta], rel=1e-9, abs=1e-12)
        state = after


ROOT = double([1.5, 0.8])  # √v̂ as after burn-in


def largest_z(target, cls=santa.Santa, eta=0.01, **keys):
    """Largest |z| of two moments of many chains that start at exact draws, with G fixed."""
    steps = int(20 / eta**0.5)
    values = defaults("inference", "santa") | {
        "chains": 1500,
        "step_size": eta,
        "annealing": 0.0,
        "refine": False,
        "adapt": "burn_in",
        "burn_in": 1,
        "thinning": steps,
        "damping": 0.2,
    }
    method = cls.model_validate(values | keys)  # type: ignore[attr-defined]
    rng = Streams(0)
    state = method.init(target, None, rng)
    v = ROOT[: target.dim].square() * (1 - method.averaging)
    # G as after one step of burn-in
    state = replace(state, v=v.expand_as(state.theta), t=1)
    for _ in range(steps):
        state, _ = method.step(state, None, rng)
    return moment_z(method.posterior(state), target)


def make_stationary(coldness):
    """A Gaussian with chains that start at exact draws of its power 1/A."""
    target = correlated_gaussian()
    root = torch.linalg.cholesky(target.covariance) / coldness**0.5
    target.second = target.covariance.diagonal() / coldness + target.mean**2
    target.sample_prior = lambda n, generator: (  # type: ignore[method-assign]
        target.mean + normal(generator, n, 2) @ root.T
    )
    return target


@pytest.mark.parametrize("coldness", [1.0, 3.0])
def test_moments_are_exact_with_fixed_preconditioner(coldness):
    assert largest_z(make_stationary(coldness), coldness=coldness) < 4


def test_gamma_moments_are_exact():
    assert largest_z(ExactGamma()) < 4


MUTANTS = {
    "temperature of the thermostat": ("u.square() - heat", "u.square() - 0.7 * heat"),
    "thermostat the wrong way round": ("alpha + u.square() - heat", "alpha - u.square() + heat"),
    "thermostat left out": ("alpha = alpha + u.square() - heat", "pass"),
    "kick without the preconditioner": ("kick = eta * G * gradient", "kick = eta * gradient"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_has_wrong_stationary_moments(mutant):
    try:
        z = largest_z(correlated_gaussian(), mutate_component(santa, *MUTANTS[mutant]))
    except NumericalError:  # values may become non-finite
        z = math.inf
    assert not z < 5


def test_refinement_descends_to_mode():
    target = correlated_gaussian()
    keys = {"chains": 4, "burn_in": 50, "thinning": 1, "step_size": 0.05, "damping": 0.5}
    state, info = run_chains(component("inference", "santa", **keys), target, 600)
    assert info["temperature"] == 0
    assert_close(state.theta, target.mean.expand(4, 2), atol=1e-5, rtol=0)


class TwoModes(PriorOfTwo):
    """0.8 N(0, 0.8²) + 0.2 N(3, 0.8²)."""

    dim = 1
    names = ["x"]

    def sample_prior(self, n, generator):
        return 0.6 + 2 * normal(generator, n, 1)

    def log_prior(self, theta):
        squares = ((theta - double([0.0, 3.0])) / 0.8) ** 2
        return (double([0.8, 0.2]).log() - 0.5 * squares).logsumexp(1)


@pytest.mark.parametrize(("burn_in", "least", "most"), [(0, 0.2, 1.0), (600, 0.0, 0.08)])
def test_annealed_chains_reach_higher_mode(burn_in, least, most):
    """Without exploration, each chain ends at the mode near its start."""
    keys = {"chains": 100, "burn_in": burn_in, "damping": 0.1, "coldness": 0.1, "averaging": 0.9}
    method = component("inference", "santa", **keys, step_size=0.02)
    state, _ = run_chains(method, TwoModes(), burn_in + 150)
    assert least <= (state.theta > 1.9).double().mean() < most
