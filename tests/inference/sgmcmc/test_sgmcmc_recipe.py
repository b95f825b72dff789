"""Each SG-MCMC method, step by step, is the recipe of Ma et al. with the matrices that its
docstring names."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from support.runs.configured import component, double, generator, normal
from support.targets.recipe import (
    F64,
    PriorOfTwo,
    correction,
    curl,
    drift,
    euler,
    fokker_planck,
    in_turn,
)
from torch import Tensor
from torch.testing import assert_close

from components.inference.sgmcmc.psgld import curvature
from runner.execution.rng import Streams

K, P, STEPS = 3, 2, 6
THETA, REST = slice(0, P), slice(P, 2 * P)


class Skewed(PriorOfTwo):
    """−log p = Σ_j (exp θ_j − a_j θ_j) + ½ c (θ_1 − θ_2)²: skewed; its Hessian is diagonal where c
    = 0."""

    def __init__(self, c: float = 0.0):
        self.a, self.c = double([3.0, 0.8]), c

    def log_prior(self, theta: Tensor) -> Tensor:
        return (self.a * theta - theta.exp()).sum(1) - 0.5 * self.c * (
            theta[:, 0] - theta[:, 1]
        ).square()


def path(name: str, model: Skewed, **keys) -> list[tuple[dict, dict]]:
    """A method's state before and after each step."""
    inference, rng = component("inference", name, chains=K, **keys), Streams(0)
    states = [inference.init(model, None, rng)]
    for _ in range(STEPS):
        states.append(inference.step(states[-1], None, rng)[0])
    return list(pairwise(states))


def noises(*draws: str) -> list[dict[str, Tensor]]:
    """What a method drew at each step from the stream of noise, in its own order."""
    generator = Streams(0).noise
    how = {
        "xi": lambda: normal(generator, (K, P)),
        "anew": lambda: torch.rand((K, 1), generator=generator),
        "probe": lambda: torch.rand((K, P), generator=generator),
    }
    return [{name: how[name]() for name in draws} for _ in range(STEPS)]


def none(n: int):
    return lambda z: torch.zeros(n, n, dtype=F64)


def constant(diagonal: Tensor):
    return lambda z: torch.diag(diagonal)


def test_sgld():
    model = Skewed(0.7)
    states = path("sgld", model, step_size=0.1)
    for (before, after), drew in zip(states, noises("xi"), strict=True):
        for k in range(K):
            D = constant(torch.ones(P, dtype=F64))
            expected = euler(before.theta[k], model.U, D, none(P), 0.1, drew["xi"][k])
            assert_close(after.theta[k], expected)


def test_sghmc():
    model, C, eps = Skewed(0.7), 1.7, 0.1
    states = path("sghmc", model, step_size=eps, friction=C)
    D = constant(double([0.0, 0.0, C, C]))

    def H(z: Tensor) -> Tensor:
        return model.U(z[THETA]) + 0.5 * z[REST].square().sum()

    for (before, after), drew in zip(states, noises("xi"), strict=True):
        for k in range(K):
            z = torch.cat([before.theta[k], before.r[k]])
            xi = torch.cat([torch.zeros(P, dtype=F64), drew["xi"][k]])
            z = in_turn(z, H, D, lambda z: curl(P), eps, xi, THETA, REST)
            assert_close(torch.cat([after.theta[k], after.r[k]]), z)


def test_sgd_momentum():
    model, eps, every = Skewed(0.7), 0.1, 3
    states = path("sgd_momentum", model, step_size=eps, resample_every=every)

    def H(z: Tensor) -> Tensor:
        return model.U(z[THETA]) + 0.5 * z[REST].square().sum()

    resampled = 0
    for (before, after), drew in zip(states, noises("xi", "anew"), strict=True):
        for k in range(K):
            theta, m = before.theta[k], before.m[k]
            # a fresh momentum at time t, and half a step from there
            if drew["anew"][k, 0] < 1 / every:
                m = euler(
                    torch.cat([theta, drew["xi"][k]]),
                    H,
                    none(4),
                    lambda z: curl(P),
                    eps / 2,
                    torch.zeros(4),
                )[REST]
                resampled += 1
            else:
                m = euler(
                    torch.cat([theta, m]), H, none(4), lambda z: curl(P), eps, torch.zeros(4)
                )[REST]
            theta = euler(
                torch.cat([theta, m]), H, none(4), lambda z: curl(P), eps, torch.zeros(4)
            )[THETA]
            assert_close(after.theta[k], theta)
            assert_close(after.m[k], m)
    assert 0 < resampled < K * STEPS


def scales(model: Skewed, v: Tensor, t: int, alpha: float, damping: float):
    """θ [P] -> diagonal of G at step t + 1, whose squared gradients before were v."""

    def G(theta: Tensor) -> Tensor:
        g = torch.autograd.functional.jacobian(model.U, theta, create_graph=True)
        square = alpha * v + (1 - alpha) * g**2
        return torch.diag(1 / (damping + (square / (1 - alpha ** (t + 1))).sqrt()))

    return G


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_psgld(alpha, correction):
    model = Skewed()
    states = path(
        "psgld",
        model,
        step_size=0.05,
        averaging=alpha,
        damping=0.5,
        correction=correction,
        adapt="always",
    )
    drew = noises("probe", "xi") if correction else noises("xi")
    for t, (before, after) in enumerate(states):
        for k in range(K):
            theta, D = before.theta[k], scales(model, before.v[k], t, alpha, 0.5)
            D0 = D if correction else constant(D(theta).detach().diagonal())  # as if constant: no Γ
            expected = euler(theta, model.U, D0, none(P), 0.05, drew[t]["xi"][k])
            assert_close(after.theta[k], expected.detach())


def test_adam_noise():
    model, eps, beta1, beta2, damping = Skewed(0.7), 0.05, 0.8, 0.9, 0.1
    states = path(
        "adam_noise",
        model,
        step_size=eps,
        beta1=beta1,
        beta2=beta2,
        damping=damping,
        adapt="always",
    )
    h = (eps * (1 - beta1)) ** 0.5
    gamma = (1 - beta1) / h
    for t, ((before, after), drew) in enumerate(zip(states, noises("xi"), strict=True)):
        for k in range(K):
            M = (
                1
                / scales(model, before.v[k], t, beta2, damping)(before.theta[k]).detach().diagonal()
            )
            D = constant(torch.cat([torch.zeros(P, dtype=F64), gamma * M]))

            def H(z: Tensor, M: Tensor = M) -> Tensor:
                return model.U(z[THETA]) + 0.5 * (z[REST] ** 2 / M).sum()

            z = torch.cat([before.theta[k], before.m[k] / gamma])
            xi = torch.cat([torch.zeros(P, dtype=F64), drew["xi"][k]])
            z = in_turn(z, H, D, lambda z: curl(P), h, xi, REST, THETA)
            assert_close(torch.cat([after.theta[k], after.m[k] / gamma]), z)


def test_adam_noise_without_momentum_is_psgld_without_correction():
    keys = {"step_size": 0.05, "damping": 0.1, "adapt": "always"}
    adam = path("adam_noise", Skewed(0.7), beta1=0.0, beta2=0.9, **keys)
    rms = path("psgld", Skewed(0.7), averaging=0.9, correction=False, **keys)
    assert_close(adam[-1][1].theta, rms[-1][1].theta)


def test_sgd_momentum_with_a_momentum_for_each_step_is_sgld():
    eps = 0.2
    momentum = path("sgd_momentum", Skewed(0.7), step_size=eps, resample_every=1)
    U, drew = Skewed(0.7).U, noises("xi", "anew")
    for t in range(STEPS):
        for k in range(K):
            D, theta = constant(torch.ones(P, dtype=F64)), momentum[t][0].theta[k]
            expected = euler(theta, U, D, none(P), eps**2 / 2, drew[t]["xi"][k])
            assert_close(momentum[t][1].theta[k], expected)


def test_curvature_is_an_unbiased_diagonal():
    model = Skewed(0.7)
    theta = model.sample_prior(4, generator(0))
    exact = torch.stack(
        [-torch.autograd.functional.hessian(model.U, row).diagonal() for row in theta]
    )
    g = generator(1)
    probes = torch.stack([curvature(model, theta, None, g) for _ in range(2000)])
    z = (probes.mean(0) - exact) / (probes.std(0) / 2000**0.5)
    assert z.abs().max() < 4
    assert probes.std(0).min() > 0.1  # off-diagonal entries are there
    diagonal = Skewed()
    exact = torch.stack(
        [-torch.autograd.functional.hessian(diagonal.U, row).diagonal() for row in theta]
    )
    assert_close(curvature(diagonal, theta, None, g), exact)


def test_curvature_of_a_linear_log_joint_is_zero():
    class Linear(Skewed):
        def log_prior(self, theta: Tensor) -> Tensor:
            return theta @ self.a

    theta = normal(generator(0), 3, P)
    assert torch.equal(
        curvature(Linear(), theta, None, torch.Generator()), torch.zeros(3, P, dtype=F64)
    )


# ---- what the recipe promises: exp(−H) is a stationary solution of the Fokker–Planck equation
# ------------------------
def test_recipes_leave_the_target_invariant_and_a_wrong_correction_does_not():
    model = Skewed(0.7)
    g = generator(2)

    def G(theta: Tensor) -> Tensor:  # pSGLD with α = 0, λ = 1
        slope = torch.func.grad(model.U)(theta)
        return torch.diag(1 / (1 + slope.abs()))

    def with_gamma(sign: float):
        gamma = torch.func.jacrev(lambda z: G(z).diagonal())
        return lambda z: -G(z) @ torch.func.grad(model.U)(z) + sign * gamma(z).diagonal()

    C = torch.diag(double([0.0, 0.0, 1.3, 0.4]))

    def H(z: Tensor) -> Tensor:
        return model.U(z[THETA]) + 0.5 * z[REST].square().sum()

    def hamiltonian(friction: float):
        return lambda z: -(friction * C + curl(P)) @ torch.func.grad(H)(z)

    for _ in range(5):
        theta, z = (
            normal(g, P),
            normal(g, 2 * P),
        )
        assert_close(with_gamma(1.0)(theta), drift(theta, model.U, G, none(P)))
        assert float(correction(theta, G, none(P)).abs().max()) > 1e-3
        assert abs(fokker_planck(theta, model.U, G, with_gamma(1.0))) < 1e-9
        assert abs(fokker_planck(theta, model.U, G, with_gamma(0.0))) > 1e-3  # Γ forgotten
        # as Gallego prints it
        assert abs(fokker_planck(theta, model.U, G, with_gamma(-1.0))) > 1e-3
        assert abs(fokker_planck(z, H, lambda z: C, hamiltonian(1.0))) < 1e-9
        assert abs(fokker_planck(z, H, none(2 * P), hamiltonian(0.0))) < 1e-9  # D = 0
        # noise without friction
        assert abs(fokker_planck(z, H, lambda z: C, hamiltonian(0.0))) > 1e-3
        # friction without noise
        assert abs(fokker_planck(z, H, none(2 * P), hamiltonian(1.0))) > 1e-3
