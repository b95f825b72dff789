import math

import pytest
import torch
from support.runs.configured import double, generator, normal
from support.series.particle_systems import gradient_of_k, gram
from support.targets.known_targets import F64, correlated_gaussian, sample_target, z_score
from torch import Tensor
from torch.testing import assert_close

from components.errors import NumericalError
from components.maths.particles import interactions
from components.maths.particles.interactions import (
    Interaction,
    kernel,
    median_bandwidth,
    square_distances,
)

L = 4
P = 3
H = 1.7
REPULSIVE = ["sgld_r", "sgdm_r", "adam_nr"]


def particles(seed=0, n=L, dim=P):
    return normal(generator(seed), n, dim)


def interaction(theta, h=H):
    return Interaction(theta, *kernel(theta, h))


# literal equations
def D_K(flat, n=L, dim=P):
    """The Ln × Ln matrix K/L ⊗ I at the concatenated z_1, …, z_L; differentiable."""
    return torch.kron(gram(flat.reshape(n, dim), H) / n, torch.eye(dim, dtype=F64))


def divergence(matrix, flat):
    """Γ_i = Σ_j ∂ matrix_ij / ∂z_j, eq. (2.2)."""
    jacobian = torch.autograd.functional.jacobian(matrix, flat)  # [n, n, n]
    return torch.einsum("ijj->i", jacobian)


def test_kernel_is_rbf_with_liu_wang_bandwidth():
    theta = 100 + particles()
    K, h = kernel(theta, "median")
    pairs = sorted(float((theta[i] - theta[j]).norm()) for i in range(L) for j in range(i))
    assert float(h) == pytest.approx(pairs[(len(pairs) - 1) // 2] ** 2 / math.log(L))
    assert_close(K, gram(theta, float(h)))
    assert (K.diagonal() == 1).all()


def test_drift_and_correction_match_recipe_for_D_K():
    theta = particles()
    gradient = particles(1)
    fast = interaction(theta)
    D = D_K(theta.flatten())
    assert_close(fast.average(gradient).flatten(), D @ gradient.flatten())
    assert_close(fast.correction().flatten(), divergence(D_K, theta.flatten()))
    literal = torch.stack([sum(gradient_of_k(z, theta[i], H) for z in theta) / L for i in range(L)])
    assert_close(fast.correction(), literal)


def test_Q_K_is_skew_and_corrects_only_momenta():
    theta = particles()
    m = particles(2)

    def Q(state):
        D = D_K(state[: L * P])
        zero = torch.zeros_like(D)
        return torch.cat([torch.cat([zero, -D], 1), torch.cat([D, zero], 1)])

    state = torch.cat([theta.flatten(), m.flatten()])
    assert_close(Q(state), -Q(state).T)
    gamma = divergence(Q, state)
    assert gamma[: L * P].abs().max() == 0
    assert_close(gamma[L * P :], interaction(theta).correction().flatten())


def test_noise_has_covariance_of_D_K():
    theta = 0.7 * particles()
    g = generator(3)
    fast = interaction(theta)
    draws = torch.stack([fast.noise(g, 1e-10)[0].flatten() for _ in range(15_000)])
    exact = D_K(theta.flatten())
    diagonal = exact.diagonal()
    error = ((diagonal.unsqueeze(1) * diagonal + exact**2) / len(draws)).sqrt()
    assert ((draws.T @ draws / len(draws) - exact) / error).abs().max() < 4.5  # 78 entries


# the target is invariant: E_π[𝓛f] = 0, without any step size
def generator_z(bandwidth, systems=1500, sign=1.0, diffusion="K"):
    """Largest |z| of E_π[b·∇f + tr(D ∇²f)], f = Σ_l ‖z_l‖² and ‖Σ_l z_l‖², over systems of 4
    particles of N(0, I₂)."""
    g = generator(0)
    values = []
    for z in normal(g, systems, L, 2):
        fast = Interaction(z, *kernel(z, bandwidth))
        unit = torch.eye(L, dtype=F64)
        D = {"K": fast.K, "I": unit, "2K": 2 * fast.K, "0": 0 * unit}[diffusion] / L
        drift = fast.average(-z) + sign * fast.correction()
        total = z.sum(0)
        trace = (2 * z * drift).sum() + 4 * D.trace()
        values.append([float(trace), float((2 * total * drift).sum() + 4 * D.sum())])
    return float(z_score(double(values), 0.0).abs().max())


@pytest.mark.parametrize("bandwidth", [0.5, 2.0])
def test_sgld_r_leaves_target_invariant(bandwidth):
    assert generator_z(bandwidth) < 4


@pytest.mark.parametrize(
    "mutant",
    [{"sign": -1.0}, {"diffusion": "I"}, {"diffusion": "2K"}, {"diffusion": "0"}],
    ids=["attraction", "uncorrelated noise", "noise of the wrong scale", "svgd, proposition 2.3"],
)
def test_mutants_change_the_target(mutant):
    assert generator_z(2.0, **mutant) > 15


# limits, memory, and refusals
def test_no_tensor_has_pairs_times_coordinates(monkeypatch):
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            out = function(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                largest = max(largest, tensor.numel() if isinstance(tensor, Tensor) else 0)
            return out

    theta = particles(n=20, dim=3000).float()
    with Watch():
        fast = Interaction(theta, *kernel(theta, "median"))
        (fast.average(theta) + fast.correction() + fast.noise(generator(0), 1e-4)[0])
    assert largest == theta.numel()


def test_distances_are_accurate_far_from_the_origin():
    theta = particles().float()
    assert_close(square_distances(1000 + theta), square_distances(theta), rtol=1e-2, atol=1e-2)
    assert square_distances(1000 + theta).min() == 0


def test_particles_without_repulsion_are_independent():
    theta = particles()
    gradient = particles(1)
    reference = Interaction(theta, None, None)
    assert_close(reference.average(gradient), gradient / L)
    assert reference.correction() == 0.0
    far = interaction(1e3 * theta)
    assert_close(far.average(gradient), gradient / L)
    g = [generator(0) for _ in range(2)]
    assert_close(reference.noise(g[0], 1e-6)[0], far.noise(g[1], 1e-6)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REPULSIVE)
def test_repulsion_ends_at_configured_step(name, monkeypatch):
    calls = []
    monkeypatch.setattr(
        interactions, "kernel", lambda theta, h: calls.append(1) or kernel(theta, h)
    )
    sample_target(
        name, correlated_gaussian(), steps=9, chains=4, repulsion_until=6, step_size=0.01, burn_in=1
    )
    assert len(calls) == 6


def test_coinciding_particles_are_refused():
    target = correlated_gaussian()
    target.spread = 0.0
    for name in [*REPULSIVE, "svgd"]:
        with pytest.raises(NumericalError, match=r"median distance of the particles is 0"):
            sample_target(name, target, steps=1)


def test_single_particle_has_bandwidth():
    assert float(median_bandwidth(torch.zeros(1, 1))) == 1
