"""Each step of an SG-MCMC method equals the recipe of Ma et al. with the matrices in the method's
docstring."""

from itertools import pairwise

import pytest
import torch
from support.runs.configured import component, double, draw_normal, generator, normal
from support.targets.known_targets import walk, z_score
from support.targets.recipe import (
    F64,
    PriorOfTwo,
    curl,
    euler,
    flow,
    split_step,
    with_momentum,
    zero,
)
from torch.testing import assert_close

from components.inference.sgmcmc.psgld import curvature
from runner.execution.rng import Streams

K = 3
P = 2
STEPS = 6
THETA = slice(0, P)
REST = slice(P, 2 * P)


class Skewed(PriorOfTwo):
    """−log p = Σ_j (exp θ_j − a_j θ_j) + ½ c (θ_1 − θ_2)², a skewed density with a Hessian that is
    diagonal if c = 0."""

    def __init__(self, c=0.0):
        self.a = double([3.0, 0.8])
        self.c = c

    def log_prior(self, theta):
        return (self.a * theta - theta.exp()).sum(1) - 0.5 * self.c * (
            theta[:, 0] - theta[:, 1]
        ).square()


def path(name, model, **keys):
    """A method's state before and after each step."""
    inference = component("inference", name, chains=K, **keys)
    rng = Streams(0)
    first = inference.init(model, None, rng)
    return list(pairwise([first, *(state for state, _ in walk(inference, model, STEPS))]))


def noises(*draws):
    """Draws of a method from the noise stream at each step, in the order of the method."""
    generator = Streams(0).noise
    updates = {
        "xi": lambda: normal(generator, (K, P)),
        "anew": lambda: torch.rand((K, 1), generator=generator),
        "probe": lambda: torch.rand((K, P), generator=generator),
    }
    return [{name: updates[name]() for name in draws} for _ in range(STEPS)]


def constant(diagonal):
    return lambda z: torch.diag(diagonal)


@pytest.mark.parametrize(
    ("name", "keys", "draws", "eps"),
    [
        ("sgld", {"step_size": 0.1}, ["xi"], 0.1),
        # a fresh momentum at every step
        ("sgd_momentum", {"step_size": 0.2, "resample_every": 1}, ["xi", "anew"], 0.2**2 / 2),
    ],
)
def test_sgld_matches_recipe(name, keys, draws, eps):
    model = Skewed(0.7)
    D = constant(torch.ones(P, dtype=F64))
    for (previous, current), noise in zip(path(name, model, **keys), noises(*draws), strict=True):
        for k in range(K):
            expected = euler(previous.theta[k], model.U, D, zero(P), eps, noise["xi"][k])
            assert_close(current.theta[k], expected)


def test_sghmc_matches_recipe():
    model = Skewed(0.7)
    C = 1.7
    eps = 0.1
    states = path("sghmc", model, step_size=eps, friction=C)
    D = constant(double([0.0, 0.0, C, C]))
    H = with_momentum(model.U, P)
    for (previous, current), noise in zip(states, noises("xi"), strict=True):
        for k in range(K):
            z = torch.cat([previous.theta[k], previous.r[k]])
            xi = torch.cat([torch.zeros(P, dtype=F64), noise["xi"][k]])
            z = split_step(z, H, D, lambda z: curl(P), eps, xi, THETA, REST)
            assert_close(torch.cat([current.theta[k], current.r[k]]), z)


def test_sgd_momentum_matches_recipe():
    model = Skewed(0.7)
    eps = 0.1
    every = 3
    states = path("sgd_momentum", model, step_size=eps, resample_every=every)
    H = with_momentum(model.U, P)
    resampled = 0
    for (previous, current), noise in zip(states, noises("xi", "anew"), strict=True):
        for k in range(K):
            theta = previous.theta[k]
            m = previous.m[k]
            kick = eps
            # a fresh momentum at time t, and half a step from there
            if noise["anew"][k, 0] < 1 / every:
                m = noise["xi"][k]
                kick = eps / 2
                resampled += 1
            m = flow(torch.cat([theta, m]), H, kick)[REST]
            theta = flow(torch.cat([theta, m]), H, eps)[THETA]
            assert_close(current.theta[k], theta)
            assert_close(current.m[k], m)
    assert 0 < resampled < K * STEPS


def scales(model, v, t, alpha, damping):
    """θ [P] -> diagonal of G at step t + 1, with squared gradients v before it."""

    def G(theta):
        g = torch.autograd.functional.jacobian(model.U, theta, create_graph=True)
        square = alpha * v + (1 - alpha) * g**2
        return torch.diag(1 / (damping + (square / (1 - alpha ** (t + 1))).sqrt()))

    return G


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_psgld_matches_recipe(alpha, correction):
    model = Skewed()
    keys = {"step_size": 0.05, "averaging": alpha, "damping": 0.5, "correction": correction}
    states = path("psgld", model, adapt="always", **keys)
    noise = noises("probe", "xi") if correction else noises("xi")
    for t, (previous, current) in enumerate(states):
        for k in range(K):
            theta = previous.theta[k]
            D = scales(model, previous.v[k], t, alpha, 0.5)
            # constant scales: no Γ
            D0 = D if correction else constant(D(theta).detach().diagonal())
            expected = euler(theta, model.U, D0, zero(P), 0.05, noise[t]["xi"][k])
            assert_close(current.theta[k], expected.detach())


def test_adam_noise_matches_recipe():
    model = Skewed(0.7)
    eps = 0.05
    beta1 = 0.8
    beta2 = 0.9
    damping = 0.1
    keys = {"step_size": eps, "beta1": beta1, "beta2": beta2, "damping": damping}
    states = path("adam_noise", model, adapt="always", **keys)
    h = (eps * (1 - beta1)) ** 0.5
    gamma = (1 - beta1) / h
    for t, ((previous, current), noise) in enumerate(zip(states, noises("xi"), strict=True)):
        for k in range(K):
            theta = previous.theta[k]
            M = 1 / scales(model, previous.v[k], t, beta2, damping)(theta).detach().diagonal()
            D = constant(torch.cat([0 * M, gamma * M]))
            H = with_momentum(model.U, P, M)
            z = torch.cat([theta, previous.m[k] / gamma])
            xi = torch.cat([0 * M, noise["xi"][k]])
            z = split_step(z, H, D, lambda z: curl(P), h, xi, REST, THETA)
            assert_close(torch.cat([current.theta[k], current.m[k] / gamma]), z)


def test_adam_noise_without_momentum_is_uncorrected_psgld():
    keys = {"step_size": 0.05, "damping": 0.1, "adapt": "always"}
    adam = path("adam_noise", Skewed(0.7), beta1=0.0, beta2=0.9, **keys)
    rms = path("psgld", Skewed(0.7), averaging=0.9, correction=False, **keys)
    assert_close(adam[-1][1].theta, rms[-1][1].theta)


def test_curvature_estimate_is_unbiased():
    def diagonal(model):
        hessians = [torch.autograd.functional.hessian(model.U, row) for row in theta]
        return -torch.stack(hessians).diagonal(dim1=1, dim2=2)

    model = Skewed(0.7)
    separate = Skewed()
    theta = model.sample_prior(4, generator(0))
    g = generator(1)
    probes = torch.stack([curvature(model, theta, None, g) for _ in range(2000)])
    assert z_score(probes, diagonal(model)).abs().max() < 4
    assert probes.std(0).min() > 0.1  # off-diagonal entries exist
    assert_close(curvature(separate, theta, None, g), diagonal(separate))


def test_curvature_of_a_linear_log_joint_is_zero():
    class Linear(Skewed):
        def log_prior(self, theta):
            return theta @ self.a

    theta = draw_normal(3, P)
    assert not curvature(Linear(), theta, None, torch.Generator()).any()


# guarantee of the recipe: exp(−H) is a stationary solution of the Fokker–Planck equation
