"""Kernels that refine draws: drifts and repulsion compared with literal sums, leapfrog steps with
the sampler's."""

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator
from support.targets.refined_targets import gaussian, slope_of

from components.errors import ConfigMismatchError
from components.inference.hamiltonian.leapfrog import Phase, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.inference.refined.kernels import KernelStep, negative_score, slope
from components.maths.exponential.standard_draws import normal_like

ETA = double(0.1)
H = 1.3


def particles(S=5, B=3, D=2):
    return draw_normal(S, B, D)


def k(a, b):
    return torch.exp(-(a - b).square().sum() / H)


def kernel_gradient(a, b):
    """∇_a k(a, b)."""
    return -2 / H * (a - b) * k(a, b)


def field(z):
    return slope(gaussian, z, False)


def test_gradient_matches_target():
    z = particles()
    assert torch.allclose(slope(gaussian, z, False), slope_of(z))
    assert not slope(gaussian, z.requires_grad_(), False).requires_grad
    assert slope(gaussian, z, True).requires_grad


def test_stein_direction_matches_double_sum():
    z = particles()
    g = slope_of(z)
    step = KernelStep("svgd", H, 1, 1e-9).delta(field, z, ETA, torch.Generator())
    for b in range(3):
        for i in range(5):
            phi = (
                sum(
                    k(z[j, b], z[i, b]) * g[j, b] + kernel_gradient(z[j, b], z[i, b])
                    for j in range(5)
                )
                / 5
            )
            assert torch.allclose(step[i, b], ETA * phi)


def test_repulsive_noise_has_kernel_covariance():
    """Δz − drift is N(0, (2η/S) K ⊗ I), independently for each posterior."""
    z = particles(3, 2)
    g = generator(0)
    move = KernelStep("sgld_r", H, 1, 1e-9)
    still = KernelStep("svgd", H, 1, 1e-9)
    drift = still.delta(field, z, ETA, g)
    draws = torch.stack([move.delta(field, z, ETA, g) - drift for _ in range(1500)])  # [n, S, B, D]
    for b in range(2):
        K = torch.exp(-torch.cdist(z[:, b], z[:, b]).square() / H)
        expected = 2 * ETA / 3 * K
        for d in range(2):
            covariance = torch.cov(draws[:, :, b, d].T)
            sd = (
                (expected.square() + torch.outer(expected.diagonal(), expected.diagonal())) / 1500
            ).sqrt()
            assert ((covariance - expected) / sd).abs().max() < 4
    across = torch.cov(torch.cat([draws[:, :, 0, 0], draws[:, :, 1, 0]], 1).T)[:3, 3:]
    assert across.abs().max() < 0.008


def test_blob_direction_matches_sums():
    z = particles()
    score = negative_score(z, H)
    for b in range(3):
        density = [sum(k(z[n, b], z[j, b]) for n in range(5)) for j in range(5)]
        for m in range(5):
            first = sum(kernel_gradient(z[m, b], z[n, b]) for n in range(5)) / density[m]
            second = sum(kernel_gradient(z[m, b], z[j, b]) / density[j] for j in range(5))
            assert torch.allclose(score[m, b], -first - second)


class Target:
    """The same density, as a log joint."""

    def log_prior(self, theta):
        return gaussian(theta)


@pytest.mark.parametrize("steps", [1, 4])
def test_leapfrog_matches_sampler(steps):
    z = particles(4, 1)
    step = KernelStep("hmc", H, steps, 1e-9).delta(field, z, ETA, generator(5))
    r = normal_like(z, generator(5))[:, 0]
    theta = z[:, 0]
    phase = Phase(theta, r, gaussian(theta), slope_of(theta))
    ahead = leapfrog(Target(), None, Mass.of(torch.ones(2, dtype=F64)), float(ETA), phase, steps)
    assert torch.allclose(step[:, 0], ahead.theta - theta)


def test_target_without_gradient_is_refused():
    with pytest.raises(ConfigMismatchError, match=r"^inference=vis .*; use inference=gaussian_vi"):
        slope(lambda z: gaussian(z).detach(), particles(), False)
