"""Stationary distributions of SG-MCMC chains, known exactly for Gaussians because a step is linear,
and the effect of deliberate mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from support.runs.configured import component, defaults, double
from support.targets.known_targets import (
    GammaTarget,
    correlated_gaussian,
    moment_z,
    run_chains,
    walk,
    z_score,
)
from support.targets.recipe import (
    F64,
    covariance_z,
    curl,
    euler,
    fixed_point,
    flow,
    mutate_component,
    split_step,
    stationary,
    with_momentum,
    zero,
)
from torch.testing import assert_close

from components.inference.sgmcmc import adam_noise, psgld, sgd_momentum, sghmc
from runner.execution.rng import Streams

TARGET = correlated_gaussian()
P = 2
THETA = slice(0, P)
REST = slice(P, 2 * P)
C = 1.5
M = double([2.0, 0.7])
BETA1 = 0.8
EVERY = 5
ROOT = M - 0.1  # √v̂, where λ = 0.1
KEYS: dict[str, dict[str, Any]] = {
    "sgld": {},
    "sghmc": {"friction": C},
    "sgd_momentum": {"resample_every": EVERY},
    "psgld": {"averaging": 0.0, "damping": 0.1, "adapt": "burn_in", "burn_in": 1},
    "adam_noise": {"beta1": BETA1, "beta2": 0.0, "damping": 0.1, "adapt": "burn_in", "burn_in": 1},
}


def U(theta):
    return 0.5 * theta @ TARGET.precision @ theta


def covariance(name, eps):
    """Stationary covariance of θ, from the literal recipe."""
    unit = torch.ones(P, dtype=F64)
    eye = torch.eye(2 * P, dtype=F64)
    if name in ("sgld", "psgld"):
        D = torch.diag(unit if name == "sgld" else 1 / M)
        return stationary(lambda z, xi: euler(z, U, lambda z: D, zero(P), eps, xi), P)
    if name == "sgd_momentum":
        H = with_momentum(U, P)
        on, anew = (torch.stack([kick_and_drift(e, H, eps, k) for e in eye], 1) for k in (1, 0.5))

        def f(S):
            fresh = eye.clone()
            fresh[THETA, THETA] = S[THETA, THETA]
            return (1 - 1 / EVERY) * on @ S @ on.T + anew @ fresh @ anew.T / EVERY

        return fixed_point(f, 2 * P)[THETA, THETA]
    h = eps
    mass = unit
    rate = C * unit
    order = (THETA, REST)
    if name == "adam_noise":
        h = (eps * (1 - BETA1)) ** 0.5
        mass = M
        order = (REST, THETA)
        rate = (1 - BETA1) / h * M
    D = torch.block_diag(torch.zeros(P, P, dtype=F64), rate.diag())
    H = with_momentum(U, P, mass)

    def step(z, xi):
        return split_step(z, H, lambda z: D, lambda z: curl(P), h, xi, *order)

    return stationary(step, 2 * P)[THETA, THETA]


def kick_and_drift(z, H, eps, kick):
    """Momenta first, then positions, without noise; the momenta after a share of a step."""
    z = torch.cat([z[THETA], flow(z, H, kick * eps)[REST]])
    return torch.cat([flow(z, H, eps)[THETA], z[REST]])


def final_positions(name, eps, steps, cls=None):
    """Positions of chains after the given steps, [C, P]."""
    values = defaults("inference", name)
    keys = values | KEYS[name] | {"chains": 8000, "step_size": eps, "thinning": steps}
    inference = (cls or type(component("inference", name))).model_validate(keys)
    rng = Streams(0)
    state = inference.init(TARGET, None, rng)
    if name in ("psgld", "adam_noise"):  # scales as after burn-in
        state = replace(state, v=ROOT.square().expand(8000, P), t=1)
    for _ in range(steps):
        state, _ = inference.step(state, None, rng)
    return state.theta


STEPS = {
    "sgld": (0.1, 120),
    "sghmc": (0.3, 120),
    "sgd_momentum": (0.3, 150),
    "psgld": (0.1, 150),
    "adam_noise": (0.1, 200),
}


@pytest.mark.parametrize("name", STEPS)
def test_stationary_covariance_matches_theory(name):
    eps, steps = STEPS[name]
    theta = final_positions(name, eps, steps)
    assert covariance_z(theta, covariance(name, eps)) < 4
    assert z_score(theta, TARGET.mean).abs().max() < 4


MUTANTS = {
    "no friction noise": (sghmc, "+ spread * noise", "+ 0 * spread * noise"),
    "half of it": (sghmc, "(2 * C - eps * V)", "(C - eps * V)"),
    "no friction": (sghmc, "- eps * C * r", ""),
    "gradient upside down": (sghmc, "r + eps * gradient", "r - 0.1 * eps * gradient"),
    "whole kick after resampling": (
        sgd_momentum,
        "xi + 0.5 * eps * gradient",
        "xi + eps * gradient",
    ),
    "kicks twice as long": (sgd_momentum, "+ eps * gradient)", "+ 2 * eps * gradient)"),
    "noise of plain Langevin": (psgld, "(2 * eps * G)", "(2 * eps + 0 * G)"),
    "noise ε instead of 2ε": (psgld, "(2 * eps * G)", "(eps * G)"),
    "noise without mass": (adam_noise, "(2 / eps * M)", "(2 / eps + 0 * M)"),
    "noise not averaged like the gradient": (adam_noise, "+ (2 / eps * M)", "+ 2 * (2 / eps * M)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_has_wrong_stationary_covariance(mutant):
    module, right, wrong = MUTANTS[mutant]
    name = module.__name__.split(".")[-1]
    eps, steps = STEPS[name]
    theta = final_positions(name, eps, steps, cls=mutate_component(module, right, wrong))
    assert not covariance_z(theta, covariance(name, eps)) < 4


def test_variances_match_docstrings():
    along, across = torch.linalg.eigh(TARGET.covariance)
    sgld = along / (1 - 0.1 / (2 * along))
    momentum = along / (1 - 0.3**2 / (4 * along))
    assert_close(covariance("sgld", 0.1), across @ sgld.diag() @ across.T)
    assert_close(covariance("sgd_momentum", 0.3), across @ momentum.diag() @ across.T)


# scales that follow the chain
def skewed_errors(cls=psgld.PSGLD, eps=0.02, chains=600, **keys):
    """pSGLD on x = exp θ ~ Gamma(3, 2), where scales depend on θ: largest |z| of two moments;
    relative error of E[x²]."""
    values = defaults("inference", "psgld") | {
        "chains": chains,
        "step_size": eps,
        "burn_in": int(8 / eps),
        "thinning": int(0.5 / eps),
        "damping": 1.0,
    }
    inference = cls.model_validate(values | keys)
    target = GammaTarget()
    draws = inference.posterior(run_chains(inference, target, int(24 / eps))[0])
    return moment_z(draws, target), float((draws.second_moment / target.second - 1).abs().max())


def test_only_correct_correction_keeps_target():
    keys = {"averaging": 0.0, "adapt": "always", "correction": True}
    assert skewed_errors(**keys)[0] < 4
    assert (
        skewed_errors(mutate_component(psgld, "drift - G.square()", "drift + G.square()"), **keys)[
            0
        ]
        > 6
    )


@pytest.mark.slow
def test_missing_or_wrong_correction_is_detected():
    keys = {"averaging": 0.0, "adapt": "always"}
    assert skewed_errors(correction=False, **keys)[0] > 6
    assert (
        skewed_errors(
            mutate_component(psgld, "* hessian * share", "* share"), correction=True, **keys
        )[0]
        > 6
    )


@pytest.mark.slow
def test_fixed_scales_require_no_correction():
    assert skewed_errors(averaging=0.9, correction=False, adapt="burn_in")[0] < 4
    assert skewed_errors(averaging=0.9, correction=False, adapt="always")[0] > 6


@pytest.mark.parametrize("name", ["psgld", "adam_noise"])
@pytest.mark.parametrize("adapt", ["always", "burn_in"])
def test_scales_adapt_as_configured(name, adapt):
    inference = component("inference", name, chains=3, burn_in=4, adapt=adapt)
    v = [state.v for state, _ in walk(inference, TARGET, 8)]
    assert not torch.equal(v[2], v[3])
    assert torch.equal(v[3], v[7]) == (adapt == "burn_in")
