"""Kernels within random blocks of particles: the mean over all partitions, Γ as the divergence of
D, the distribution of the noise, and the invariant density of a sampler of blocks."""

import itertools

import pytest
import torch
from support.runs.configured import generator, normal
from support.series.particle_systems import gradient_of_k, k
from support.targets.known_targets import F64, correlated_gaussian, sample_target
from torch.testing import assert_close

from components.maths.particles.interactions import BlockInteraction, among, within_blocks
from runner.execution.rng import Streams

L = 4
P = 3
H = 1.7
M = 2


@pytest.fixture
def theta():
    return normal(generator(0), L, P)


def interact_in_order(theta, order):
    order = torch.tensor(order)
    return BlockInteraction(order, among(theta[order], len(order) // M, H), 1)


def full_sums(theta, gradient):
    """∇log π(z_i), and Σ_{l≠i} [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)], literally."""
    rest = torch.zeros_like(theta)
    for i, j in itertools.permutations(range(L), 2):
        rest[i] += k(theta[j], theta[i], H) * gradient[j] + gradient_of_k(theta[j], theta[i], H)
    return gradient, rest


def test_mean_over_partitions_is_scaled_full_sum(theta):
    gradient = normal(generator(1), L, P)
    total = torch.zeros_like(theta)
    orders = list(itertools.permutations(range(L)))
    for order in orders:
        particles = interact_in_order(theta, order)
        total += M * (particles.average(gradient) + particles.correction())
    own_sums, rest = full_sums(theta, gradient)
    assert_close(total / len(orders), own_sums + (M - 1) / (L - 1) * rest)


def test_correction_is_divergence_of_block_kernels(theta):
    order = (2, 0, 3, 1)
    correction = interact_in_order(theta, order).correction()
    for i, j in ((2, 0), (0, 2), (3, 1), (1, 3)):
        assert_close(correction[i], gradient_of_k(theta[j], theta[i], H) / M)


def test_noise_has_block_kernel_covariance(theta):
    particles = interact_in_order(theta, (2, 0, 3, 1))
    generator = torch.Generator().manual_seed(3)
    draws = torch.stack([particles.noise(generator, 1e-9)[0][:, 0] for _ in range(4000)])
    expected = torch.eye(L, dtype=F64) / M
    for i, j in ((2, 0), (0, 2), (3, 1), (1, 3)):
        expected[i, j] = k(theta[i], theta[j], H) / M
    assert (draws.T @ draws / 4000 - expected).abs().max() < 0.06


def test_single_block_is_full_kernel(theta):
    gradient = torch.ones_like(theta)
    of_all = among(theta, 1, H)
    blocks = within_blocks(theta, 1, H, L, Streams(0).noise)
    assert_close(blocks.average(gradient), of_all.average(gradient))
    assert_close(blocks.correction(), of_all.correction())
    assert {key: float(v) for key, v in blocks.facts().items()} == pytest.approx(
        {key: float(v) for key, v in of_all.facts().items()}
    )


def test_blocks_stay_within_replicates(theta):
    both = torch.cat([theta, theta + 100])
    noise = within_blocks(both, 2, H, M, Streams(0).noise)
    assert sorted(noise.order[:L].tolist()) == list(range(L))
    assert noise.facts()["bandwidth"].shape == (2,)


def test_block_sampler_matches_target_moments():
    draws = sample_target(
        "sgld_r",
        correlated_gaussian(),
        steps=1500,
        chains=8,
        kernel_particles=2,
        bandwidth=1.0,
        step_size=0.06,
        burn_in=200,
        thinning=5,
    ).flat
    target = correlated_gaussian()
    assert (draws.mean(0) - target.mean).abs().max() < 0.2
    assert (torch.cov(draws.T) - target.covariance).abs().max() < 0.3
