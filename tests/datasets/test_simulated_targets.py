"""The density and sequence datasets against literal formulas."""

from __future__ import annotations

import math

import pytest
import torch
from filter_play import component, load, z_score


def test_mixture_density_is_the_literal_sum():
    problem, _ = load("mixture_of_gaussians_2d")
    theta = 2 * torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for row, got in zip(theta, problem.log_density(theta), strict=True):
        total = 0.0
        for a in (-2.0, 0.0, 2.0):
            for b in (-2.0, 0.0, 2.0):
                square = (float(row[0]) - a) ** 2 + (float(row[1]) - b) ** 2
                total += math.exp(-square / 0.2) / (2 * math.pi * 0.1) / 9
        assert math.isclose(float(got), math.log(total), rel_tol=1e-10)


def test_mixture_moments_are_those_of_quadrature():
    problem, _ = load("mixture_of_gaussians_2d", per_side=2, spacing=3.0, variance=0.2)
    grid = torch.linspace(-6, 6, 601, dtype=torch.float64)
    points = torch.cartesian_prod(grid, grid)
    w = problem.log_density(points).exp() * (grid[1] - grid[0]) ** 2
    assert float(w.sum()) == pytest.approx(1, abs=1e-9)
    torch.testing.assert_close((w.unsqueeze(1) * points).sum(0), problem.mean, atol=1e-8, rtol=0)
    torch.testing.assert_close((w.unsqueeze(1) * points**2).sum(0), problem.second_moment)
    torch.testing.assert_close(problem.second_moment[0], torch.tensor(0.2 + 9 * 3 / 12, dtype=torch.float64))


def test_start_has_the_mean_and_spread_asked_for():
    problem, rng = load("mixture_of_gaussians_2d", start_mean=[3.0, -1.0], start_sd=0.5)
    start = problem.sample_prior(20_000, rng.init)
    expected = torch.tensor([3.0, -1.0], dtype=torch.float64)
    assert z_score(start, expected).abs().max() < 4
    assert z_score((start - expected).square(), 0.25).abs().max() < 4


def test_wiener_matrices_are_those_of_d_3_3():
    system, d = component("dataset", "wiener_velocity").system(), 0.1
    A = [[1, 0, d, 0], [0, 1, 0, d], [0, 0, 1, 0], [0, 0, 0, 1]]
    a, b = d**3 / 3, d**2 / 2
    Q = [[a, 0, b, 0], [0, a, 0, b], [b, 0, d, 0], [0, b, 0, d]]
    assert torch.equal(system.A, torch.tensor(A, dtype=torch.float64))
    torch.testing.assert_close(system.Q, torch.tensor(Q, dtype=torch.float64))
    assert system.H.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert torch.equal(system.Sigma, torch.eye(2, dtype=torch.float64))
    assert system.m0.tolist() == [140, 140, 50, 0]


def test_wiener_noise_has_the_covariances_asked_for():
    problem, _ = load("wiener_velocity", replicates=50, n_steps=4000)
    system, x = problem.system, problem.states[0]
    drive = x[1:] - x[:-1] @ system.A.T
    products = torch.einsum("ti,tj->tij", drive, drive)
    assert z_score(products, system.Q).abs().max() < 4.5
    noise = (problem.observations - problem.states @ system.H.T).flatten(0, 1)
    assert z_score(torch.einsum("ti,tj->tij", noise, noise), system.Sigma).abs().max() < 4.5
    assert z_score(noise, 0.0).abs().max() < 4


def test_states_depend_on_neither_replicates_nor_precision():
    one, _ = load("wiener_velocity", replicates=1, n_steps=50)
    many, _ = load("wiener_velocity", replicates=7, n_steps=50)
    rough, _ = load("wiener_velocity", replicates=1, n_steps=50, dtype=torch.float32)
    assert torch.equal(one.states, many.states)
    assert torch.equal(one.states.float(), rough.states)
    assert many.states.shape == (1, 50, 4)
    assert many.observations.shape == (7, 50, 2)
    assert not torch.equal(many.observations[0], many.observations[1])


def test_batches_end_with_the_sequence_and_start_anywhere():
    problem, rng = load("wiener_velocity", n_steps=5)
    batches = list(problem.batches("minibatch", rng, 2, 99))
    assert [step for step, _ in batches] == [3, 4, 5]
    assert torch.equal(batches[0][1].y, problem.observations[:, 2])
