"""The recipe of Ma et al. finds exact moments, but not without Γ."""

from __future__ import annotations

from typing import Any

import pytest
from support.runs.configured import defaults
from support.targets.known_targets import ExactGamma, correlated_gaussian, moment_z, run_chains
from support.targets.recipe import (
    mutated_names,
    twisted_diffusion,
)

from components.inference.sgmcmc import recipe_terms
from components.inference.sgmcmc.recipe import Recipe


def largest_z(dynamics, target, eps, **keys):
    """Largest |z| of two moments of draws of many chains."""
    values = defaults("inference", "recipe") | {
        "dynamics": dynamics,
        "chains": 300,
        "step_size": eps,
        "burn_in": int(4 / eps),
        "thinning": int(0.4 / eps),
    }
    method = Recipe.model_validate(values | keys)
    return moment_z(method.posterior(run_chains(method, target, int(12 / eps))[0]), target)


LONG = {
    "metric": "potential",
    "metric_scale": 1.0,
    "metric_offset": -1.7,
}  # U + c is 0.08 at the mode


CASES: dict[str, Any] = {
    "langevin": (
        "langevin",
        0.02,
        LONG,
        "metric.g * gradient + metric.slope",
        "metric.g * gradient",
    ),
    "hamiltonian": ("hamiltonian", 0.1, LONG | {"chains": 2000}, "+ metric.slope / (2 * root)", ""),
    "thermostat": ("thermostat", 0.1, {}, "heat - curvature", "heat"),
    "thermostats": ("thermostats", 0.1, {}, "heat - curvature", "heat"),
    "relativistic": (
        "hamiltonian",
        0.1,
        {"speed": 0.5},
        "friction * metric.g * v",
        "friction * rest[:, :P]",
    ),
    "relativistic thermostat": ("thermostat", 0.1, {"speed": 1.0}, "heat - curvature", "heat - 1"),
}


@pytest.mark.parametrize("case", CASES)
def test_moments_are_exact_only_with_gamma(case, monkeypatch):
    dynamics, eps, keys, right, wrong = CASES[case]
    assert largest_z(dynamics, ExactGamma(), eps, **keys) < 4
    broken = mutated_names(recipe_terms, right, wrong)
    for name in ("langevin", "hamiltonian"):
        monkeypatch.setattr(f"components.inference.sgmcmc.recipe.{name}", broken[name])
    assert largest_z(dynamics, ExactGamma(), eps, **keys) > 6


def test_user_matrices_give_exact_moments(offer_matrices):
    offer_matrices(lambda z: tuple(0.2 * matrix for matrix in twisted_diffusion(z)))
    keys = {"matrices": "own_recipe:matrices", "chains": 100}
    assert largest_z("langevin", correlated_gaussian(), 0.05, **keys) < 4
