"""The recipe of Ma et al. as a sampler: literal steps, special cases, exact moments, and the bias
without Γ."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.runs.configured import component, double, draw_normal, generator, normal
from support.small.small_problems import real
from support.targets.recipe import (
    F64,
    PriorOfTwo,
    correction,
    curl,
    euler,
    fokker_planck,
    gradient,
    mutated_names,
    twisted_diffusion,
)
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.inference.sgmcmc import recipe_terms
from runner.execution.rng import Streams

K = 3
P = 2
A = 1.3
EPS = 0.1
SIZES = {"langevin": P, "hamiltonian": 2 * P, "thermostat": 2 * P + 1, "thermostats": 3 * P}
NEWTON: dict[str, Any] = {"mass": 1.0, "speed": None}
EINSTEIN: dict[str, Any] = {"mass": 0.7, "speed": 0.9}
METRIC = {"metric_scale": 0.4, "metric_offset": 3.0}


class Bent(PriorOfTwo):
    """U(θ) = ½ θ₁² + ½ (θ₂ − ½ θ₁²)² + 1, with a Hessian that is not constant."""

    def log_prior(self, theta):
        a, b = theta.unbind(1)
        return -0.5 * a.square() - 0.5 * (b - 0.5 * a.square()).square() - 1


MODEL = Bent()


def kinetic(r, mass, speed):
    if speed is None:
        return 0.5 * r.square().sum() / mass
    return sum(
        (mass * speed**2 * (1 + (x / (mass * speed)) ** 2) ** 0.5 for x in r), start=torch.zeros(())
    )


def energy_of(kinetics):
    def energy(z):
        H = MODEL.U(z[:P]) + kinetic(z[P : 2 * P], **kinetics)
        xi = z[2 * P :]
        return H + 0.5 * P / max(len(xi), 1) * (xi - A).square().sum()

    return energy


def matrices(dynamics, metric, kinetics=NEWTON):
    """D(z) and Q(z) of the docstring, entry by entry."""
    n = SIZES[dynamics]

    def G(z):
        return (
            0.4 * (MODEL.U(z[:P]) + 3.0).abs().sqrt() if metric == "potential" else torch.ones(())
        )

    def D(z):
        diagonal = torch.zeros(n, dtype=F64)
        rows = slice(0, P) if dynamics == "langevin" else slice(P, 2 * P)
        diagonal[rows] = 1.0 if dynamics == "langevin" else A
        return diagonal.diag() * G(z)

    def Q(z):
        if dynamics == "langevin":
            return torch.zeros(n, n, dtype=F64)
        full = torch.nn.functional.pad(G(z).sqrt() * curl(P), (0, n - 2 * P, 0, n - 2 * P))
        v = torch.func.grad(lambda r: kinetic(r, **kinetics))(z[P : 2 * P])
        if dynamics == "thermostat":
            v = torch.nn.functional.pad(v, (P, 1)) / P
            last = torch.nn.functional.one_hot(torch.tensor(n - 1), n).to(F64)
            full = full + torch.outer(v, last) - torch.outer(last, v)
        if dynamics == "thermostats":
            upper = torch.nn.functional.pad(v.diag(), (2 * P, 0, P, P))
            full = full + upper - upper.T
        return full

    return D, Q


def begin(theta=MODEL, problem=None, **keys):
    rng = Streams(0)
    settings = {"chains": K, "friction": A, "step_size": EPS, "burn_in": 0, "thinning": 1}
    method = component("inference", "recipe", **settings | keys)
    return method, method.init(theta, problem, rng), rng


def position(state):
    return torch.cat([state.theta, state.rest], 1)


@pytest.mark.parametrize("kinetics", [NEWTON, EINSTEIN], ids=["newton", "einstein"])
@pytest.mark.parametrize("metric", ["constant", "potential"])
@pytest.mark.parametrize("dynamics", SIZES)
def test_step_matches_equation_1_13(dynamics, metric, kinetics):
    keys = {"dynamics": dynamics, "metric": metric, "updates": "together"}
    method, state, rng = begin(**keys, **METRIC, **kinetics)
    D, Q = matrices(dynamics, metric, kinetics)
    draws = Streams(0).noise
    for _ in range(3):
        after, _ = method.step(state, None, rng)
        noise = normal(draws, (K, P))
        pad = (0, 0) if dynamics == "langevin" else (P, SIZES[dynamics] - 2 * P)
        xi = torch.nn.functional.pad(noise, pad)
        for z, new, draw in zip(position(state), position(after), xi, strict=True):
            assert_close(new, euler(z, energy_of(kinetics), D, Q, EPS, draw))
        state = after


@pytest.mark.parametrize("updates", ["in_turn", "together"])
@pytest.mark.parametrize("dynamics", SIZES)
def test_user_matrices_give_same_drift(offer_matrices, dynamics, updates):
    """Γ by automatic differentiation equals the closed form."""
    D, Q = matrices(dynamics, "potential", EINSTEIN)
    offer_matrices(lambda z: (D(z), Q(z)))
    keys = {"dynamics": dynamics, "updates": updates, "metric": "potential", **METRIC, **EINSTEIN}
    named, state, _ = begin(**keys)
    theta_custom, _, _ = begin(**keys, matrices="own_recipe:matrices")
    value = MODEL.log_prior(state.theta)
    slope = torch.stack([-gradient(MODEL.U, theta) for theta in state.theta])
    a, b = (m.terms(state.theta, state.rest + 0.1, value, slope) for m in (named, theta_custom))
    assert_close(a.drift, b.drift)
    V = torch.full((K, P), 0.3, dtype=F64)
    xi = normal(generator(0), K, SIZES[dynamics])
    rows = slice(a.first, a.first + P)
    assert_close(a.noise(xi[:, rows], EPS, V), b.noise(xi, EPS, V))


@pytest.mark.parametrize(
    ("dynamics", "other", "noise"),
    [
        ("langevin", "sgld", {}),
        ("hamiltonian", "sghmc", {"noise_estimate": False}),
        ("hamiltonian", "sghmc", {"noise_estimate": True, "gradient": "svrg", "refresh_every": 3}),
    ],
)
def test_special_cases_match_samplers(dynamics, other, noise):
    problem = real(n=24, n_tasks=1, missing=0.0)
    model = component("model", "linear_regression", noise=0.5).build(problem, Streams(0))
    single_noise, state, rng = begin(model, problem, dynamics=dynamics, step_size=0.01, **noise)
    settings = {"chains": K, "step_size": 0.01, "burn_in": 0, "thinning": 1} | noise
    if other == "sghmc":
        settings["friction"] = A
    two = component("inference", other, **settings)
    repeat = Streams(0)
    special = two.init(model, problem, repeat)
    for _, batch in problem.batches("minibatch", Streams(1), 0, 8):
        state = single_noise.step(state, batch, rng)[0]
        special = two.step(special, batch, repeat)[0]
        assert_close(state.theta, special.theta)


# invariance


def test_gamma_leaves_target_invariant():
    def D(z):
        return twisted_diffusion(z)[0]

    def Q(z):
        return twisted_diffusion(z)[1]

    def drift(share):
        def mu(z):
            slope = torch.func.grad(MODEL.U)(z)[None]
            terms = recipe_terms.any_matrices(twisted_diffusion, z[None], slope, slope, "")
            jacobian = torch.func.jacfwd(lambda y: D(y) + Q(y))(z)
            gamma = jacobian.diagonal(dim1=1, dim2=2).sum(1)
            return terms.drift[0] - (1 - share) * gamma

        return mu

    for z in draw_normal(4, 2, seed=1):
        assert correction(z, D, Q).abs().max() > 1e-2
        assert abs(fokker_planck(z, MODEL.U, D, drift(1.0))) < 1e-9
        assert abs(fokker_planck(z, MODEL.U, D, drift(0.0))) > 1e-3  # Γ dropped
        assert abs(fokker_planck(z, MODEL.U, D, drift(-1.0))) > 1e-3  # as published


@pytest.mark.parametrize("dynamics", ["hamiltonian", "thermostat", "thermostats"])
def test_relativistic_dynamics_leave_target_invariant(dynamics):
    """∂π/∂t = 0 at any z, except with the friction of r instead of v, or without the speed in Γ."""
    D, _ = matrices(dynamics, "potential", EINSTEIN)
    H = energy_of(EINSTEIN)

    def drift(right="", wrong=""):
        names = mutated_names(recipe_terms, right, wrong) if right else vars(recipe_terms)

        def mu(z):
            value = -MODEL.U(z[:P])
            slope = -torch.func.grad(MODEL.U)(z[:P])[None]
            g = 0.4 * (3.0 - value).sqrt()
            metric = names["Metric"](g[None, None], -(0.4**2) / (2 * g) * slope)
            kinetics = names["Kinetics"](**EINSTEIN)
            return names["hamiltonian"](metric, slope, z[None, P:], A, kinetics).drift[0]

        return mu

    wrong = [("friction * metric.g * v", "friction * metric.g * rest[:, :P]")]
    if dynamics != "hamiltonian":
        wrong.append(("heat - curvature", "heat - 1 / kinetics.mass"))
    g = generator(1)
    for z in normal(g, 3, SIZES[dynamics]):
        assert abs(fokker_planck(z, H, D, drift())) < 1e-9
        for pair in wrong:
            assert abs(fokker_planck(z, H, D, drift(*pair))) > 1e-3


def test_speed_is_bounded_and_newtonian_when_slow():
    r = double([[1e3, 1e-3]])
    v, _ = recipe_terms.Kinetics(2.0, 0.5).velocity(r)
    assert v.tolist()[0] == pytest.approx([0.5, 1e-3 / 2], rel=1e-5)


EYE = torch.eye(P, dtype=F64)


@pytest.mark.parametrize(
    ("message", "matrices"),
    [
        ("return two", lambda z: (EYE, EYE[:1])),
        ("positive semidefinite", lambda z: (-EYE, 0 * EYE)),
        ("antisymmetric", lambda z: (EYE, EYE)),
        ("ZeroDivisionError", lambda z: 1 / 0),
    ],
)
def test_invalid_matrices_are_refused(offer_matrices, message, matrices):
    offer_matrices(matrices)
    with pytest.raises(ConfigMismatchError, match=message):
        begin(dynamics="langevin", matrices="own_recipe:matrices")
