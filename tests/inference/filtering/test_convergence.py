"""Theorem 6.4.1: errors of a particle filter's means shrink as 1/√N, for the likelihood and for the
β-divergence."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.series.small_sequences import run_filter, sequence, system

from components.series.models.linear_gaussian_ssm import LinearGaussianModule

ONE = torch.ones(1, 1, dtype=torch.float64)
SCALAR = replace(system(), A=0.9 * ONE, Q=0.5 * ONE, H=ONE, Sigma=0.6 * ONE, m0=ONE[0] * 0, P0=ONE)
T = 5


def means_by_quadrature(y, beta):
    """E[x_t] of the generalised filtering distributions, (6.4) and (6.6), step by step on a grid;
    [T]."""
    x = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    moves = torch.exp(-0.5 * (x[:, None] - 0.9 * x) ** 2 / 0.5)  # f(x_t | x_{t−1}) up to a constant
    density = torch.exp(-0.5 * x**2)
    means = []
    for now in y:
        g = torch.exp(-0.5 * (now - x) ** 2 / 0.6) / math.sqrt(2 * math.pi * 0.6)
        density = (moves @ density) * (g if beta == 0 else torch.exp(g**beta / beta))
        density = density / density.sum()
        means.append((density * x).sum())
    return torch.stack(means)


def slope(name, keys, beta, sizes):
    """Slope of the log root-mean-square error of the means of x_1 … x_T against log N; ``sizes``: N
    -> replicates."""
    errors = []
    for n, replicates in sizes.items():
        problem = sequence(SCALAR, T, replicates)
        actual = run_filter(
            name, problem, LinearGaussianModule(SCALAR), seed=n, particles=n, **keys
        )
        exact = means_by_quadrature(problem.observations[0, :, 0], beta)
        errors.append(float((actual.mean[..., 0] - exact).square().mean().sqrt()))
    return float(np.polyfit(np.log(list(sizes)), np.log(errors), 1)[0])


def test_quadrature_without_beta_is_kalman_filter():
    problem = sequence(SCALAR, T, 1)
    exact = run_filter("kalman", problem, LinearGaussianModule(SCALAR)).mean[0, :, 0]
    torch.testing.assert_close(
        means_by_quadrature(problem.observations[0, :, 0], 0.0), exact, rtol=1e-6, atol=1e-6
    )


FILTERS = [
    ("bootstrap_filter", {}, 0.0),
    ("bootstrap_filter", {"resampling": "multinomial"}, 0.0),
    ("beta_bootstrap_filter", {"beta": 0.3}, 0.3),
    ("beta_auxiliary_filter", {"beta": 0.3}, 0.3),
]


@pytest.mark.parametrize(("name", "keys", "beta"), FILTERS)
def test_errors_shrink_with_root_of_particles(name, keys, beta):
    assert slope(name, keys, beta, {100: 400, 1000: 150, 10_000: 40}) == pytest.approx(
        -0.5, abs=0.06
    )
