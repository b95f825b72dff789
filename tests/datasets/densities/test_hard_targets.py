"""Moments and densities of the targets with many coordinates, curved ridges and separate modes."""

import math

import numpy as np
import pytest
import torch
from support.runs.configured import load
from support.targets.known_targets import F64
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal, Normal
from torch.testing import assert_close

from components.posteriors.draws import Draws

N = 400_000


def check_moments(problem, draws):
    """Check that three moments of exact draws are within five standard errors."""
    for power, exact in ((1, problem.mean), (2, problem.second_moment), (4, problem.fourth_moment)):
        f = draws**power
        z = (f.mean(0) - exact) / f.std(0) * math.sqrt(len(f))
        assert z.abs().max() < 5, power


def test_rosenbrock_is_a_chain_of_gaussians():
    problem, _ = load("rosenbrock", dim=4)
    theta = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=F64)
    u = theta[:, ::2]
    v = theta[:, 1::2]
    literal = Normal(1.0, math.sqrt(10)).log_prob(u) + Normal(u**2, math.sqrt(0.1)).log_prob(v)
    assert_close(problem.log_density(theta), literal.sum(1))


def test_rosenbrock_moments_match_exact_draws():
    problem, _ = load("rosenbrock", dim=2, temperature=2.0)
    z = torch.randn(N, 2, generator=torch.Generator().manual_seed(1), dtype=F64)
    u = 1 + z[:, :1]
    check_moments(problem, torch.cat([u, u**2 + 0.1 * z[:, 1:]], 1))


def test_ill_conditioned_gaussian_equals_torch():
    problem, _ = load("ill_conditioned_gaussian", dim=5)
    generator = np.random.default_rng(10)
    precisions = generator.gamma(0.5, 1.0, 5)
    axes = np.linalg.qr(generator.standard_normal((5, 5)))[0]
    covariance = torch.from_numpy(axes @ np.diag(1 / precisions) @ axes.T)
    theta = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=F64)
    exact = MultivariateNormal(torch.zeros(5, dtype=F64), covariance)
    assert_close(problem.log_density(theta), exact.log_prob(theta))
    assert_close(problem.second_moment, covariance.diagonal())


def test_condition_number_is_large_by_default():
    problem, _ = load("ill_conditioned_gaussian")
    hessian = torch.autograd.functional.hessian(
        lambda theta: problem.log_density(theta[None])[0], torch.zeros(100, dtype=F64)
    )
    eigenvalues = torch.linalg.eigvalsh(-hessian)
    assert eigenvalues.min() > 0
    assert eigenvalues.max() / eigenvalues.min() > 1e4


def test_mixture_of_gaussians_equals_torch():
    problem, _ = load("mixture_of_gaussians", variance=0.7)
    z = torch.randn(8, 10, generator=torch.Generator().manual_seed(0), dtype=F64)
    centres = 1.5 * z
    components = MultivariateNormal(centres, 0.7 * torch.eye(10, dtype=F64))
    exact = MixtureSameFamily(Categorical(torch.ones(8, dtype=F64)), components)
    theta = centres[:4] + torch.linspace(-1, 1, 10, dtype=F64)
    assert_close(problem.log_density(theta), exact.log_prob(theta))
    torch.manual_seed(1)
    check_moments(problem, exact.sample((N,)))


def test_modes_of_the_mixture_are_far_apart():
    z = torch.randn(8, 10, generator=torch.Generator().manual_seed(0), dtype=F64)
    centres = 1.5 * z
    assert torch.pdist(centres).min() > 4  # standard deviations of a mode


def test_fourth_moments_of_bent_targets_match_exact_draws():
    z = torch.randn(N, 2, generator=torch.Generator().manual_seed(2), dtype=F64)
    funnel, _ = load("funnel", dim=2, scale=0.5)
    check_moments(funnel, torch.stack([0.5 * z[:, 0], (0.25 * z[:, 0]).exp() * z[:, 1]], 1))
    banana, _ = load("banana", dim=2, scale=0.8, twist=0.5)
    first = 0.8 * z[:, 0]
    check_moments(banana, torch.stack([first, z[:, 1] - 0.5 * (first**2 - 0.64)], 1))


@pytest.mark.parametrize("shape", ["banana", "multimodal", "x_shaped"])
def test_fourth_moments_of_planar_targets_match_quadrature(shape):
    problem, _ = load("planar_toy", shape=shape)
    x = torch.linspace(-9, 9, 901, dtype=F64)
    y = torch.linspace(-12, 60, 3601, dtype=F64)
    total = torch.zeros(2, dtype=F64)
    for first in x:
        theta = torch.stack([first.expand_as(y), y], 1)
        total += (problem.log_density(theta).exp()[:, None] * theta**4).sum(0)
    cell = float((x[1] - x[0]) * (y[1] - y[0]))
    assert_close(total * cell, problem.fourth_moment, rtol=1e-4, atol=0)


def test_ksd_is_scaled_by_standard_deviations_of_the_target():
    """Draws of N(0, D²) have the KSD of z = D⁻¹θ from N(0, I)."""
    z = torch.randn(1, 60, 2, generator=torch.Generator().manual_seed(3), dtype=F64)
    sd = torch.tensor([0.01, 10.0], dtype=F64)
    narrow, rng = load("gaussian", dim=2, sd=[0.01, 10.0])
    unit, _ = load("gaussian", dim=2)
    draws = Draws(sd * z, (sd * z)[:, 0])
    assert_close(narrow.score(draws, rng)["ksd"], unit.score(Draws(z, z[:, 0]), rng)["ksd"])
    assert narrow.without_truth().coordinate_scale is None
