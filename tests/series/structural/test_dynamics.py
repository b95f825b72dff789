"""Coefficients of a structural series' own dynamics, and heavy tails, against their exact
conditionals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats

from components.contracts.structural import Dynamics, Errors
from components.series.structural.dynamics import draw_dynamics, stationary
from components.series.structural.heavy_tails import draw_degrees_of_freedom, draw_precisions

F64 = torch.float64


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_stationary_is_where_all_roots_lie_outside_the_unit_circle():
    phi = 3 * torch.rand(500, 3, generator=generator(), dtype=F64) - 1.5
    roots = [np.abs(np.roots([1, *(-row).tolist()])).max() < 1 for row in phi]
    assert 20 < sum(roots) < 480
    assert stationary(phi).tolist() == roots
    assert stationary(torch.tensor([[0.99], [1.0], [-1.2]], dtype=F64)).tolist() == [
        True,
        False,
        False,
    ]


def path(C, n=30):
    """One path of two states, of which the second is a copy, for C chains."""
    x = 0.4 * torch.randn(n, 2, generator=generator(3), dtype=F64).cumsum(0)
    return x.expand(C, n, 2)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, torch.inf), (0.2, 0.3)])
def test_one_coefficient_has_its_truncated_normal_conditional(mean, sd):
    """x_{t+1} = φ x_t + 0.5 z_t + N(0, s²) on (0, 1): a normal by least squares and the prior,
    truncated."""
    C, s = 3000, 0.6
    alpha = path(C)
    moves = Dynamics(
        ("phi",), 0, torch.tensor([[1.0, 0.0]], dtype=F64), mean, sd, (0.0, 1.0), (0.5,)
    )
    base, phi = torch.tensor([0.0, 0.5], dtype=F64), torch.full((C, 1), 0.5, dtype=F64)
    g = generator(1)
    for _ in range(6):
        phi = draw_dynamics(moves, base, alpha, torch.full((C,), s, dtype=F64), phi, g, None)
    x, z = alpha[0, :, 0], alpha[0, :, 1]
    prior = 0.0 if sd == torch.inf else 1 / sd**2
    precision = float((x[:-1] ** 2).sum()) / s**2 + prior
    centre = (float((x[:-1] * (x[1:] - 0.5 * z[:-1])).sum()) / s**2 + prior * mean) / precision
    scale = precision**-0.5
    law = stats.truncnorm((0 - centre) / scale, (1 - centre) / scale, centre, scale)
    assert stats.kstest(phi[:, 0].numpy(), law.cdf).pvalue > 1e-3


def test_several_coefficients_are_normal_where_they_are_stationary():
    """Moments against a fine grid of the stationary triangle of an autoregression of order two."""
    C, s = 6000, 0.5
    x = path(1, 12)[0, :, 0]
    alpha = torch.stack([x, torch.cat([x[:1], x[:-1]])], 1).expand(C, 12, 2)
    moves = Dynamics(("a", "b"), 0, torch.eye(2, dtype=F64), 0.0, torch.inf, None, (0.0, 0.0))
    start = torch.zeros(C, 2, dtype=F64)
    found = draw_dynamics(
        moves,
        torch.zeros(2, dtype=F64),
        alpha,
        torch.full((C,), s, dtype=F64),
        start,
        generator(2),
        None,
    )
    a, b = np.meshgrid(np.linspace(-2, 2, 401), np.linspace(-1, 1, 201), indexing="ij")
    inside = (a + b < 1) & (b - a < 1) & (np.abs(b) < 1)
    D, target = alpha[0, :-1].numpy(), alpha[0, 1:, 0].numpy()
    errors = target - a[..., None] * D[:, 0] - b[..., None] * D[:, 1]
    log = np.where(inside, -0.5 * (errors**2).sum(-1) / s**2, -np.inf)
    weight = np.exp(log - special.logsumexp(log))
    assert bool(stationary(found).all())
    for j, grid in enumerate((a, b)):
        mean, sd = (
            (weight * grid).sum(),
            np.sqrt((weight * grid**2).sum() - (weight * grid).sum() ** 2),
        )
        assert abs(float(found[:, j].mean()) - mean) < 4 * sd / C**0.5 + 1e-3
        assert float(found[:, j].std()) == pytest.approx(sd, rel=0.05)


def test_where_none_is_stationary_those_before_stay():
    x = 1.5 ** torch.arange(12, dtype=F64)
    alpha = torch.stack([x, x.roll(1)], 1).expand(2, 12, 2) + 1e-3 * torch.randn(
        2, 12, 2, generator=generator(), dtype=F64
    )
    moves = Dynamics(("a", "b"), 0, torch.eye(2, dtype=F64), 0.0, torch.inf, None, (0.0, 0.0))
    start = torch.tensor([[0.3, 0.1], [0.2, 0.0]], dtype=F64)
    found = draw_dynamics(
        moves,
        torch.zeros(2, dtype=F64),
        alpha,
        torch.full((2,), 1e-4, dtype=F64),
        start,
        generator(),
        None,
    )
    assert torch.equal(found, start)


def test_precisions_are_gamma_given_their_error_and_the_prior_where_none_is_seen():
    C, nu = 20_000, 5.0
    z = torch.tensor([0.0, 3.0, 9.0], dtype=F64).expand(C, 3)
    seen = torch.tensor([True, True, False])
    lam = draw_precisions(z, seen, torch.full((C,), nu, dtype=F64), generator())
    for t, (shape, rate) in enumerate([(3.0, 2.5), (3.0, 7.0), (2.5, 2.5)]):
        assert stats.kstest(lam[:, t].numpy(), stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3


def test_degrees_of_freedom_have_the_conditional_of_student_errors():
    """Against the posterior on a grid: ν − 2 ~ Gamma(2, 0.1) times the t density of the errors that
    are seen."""
    C, errors = 3000, Errors(True, None, 2.0, 0.1)
    z = torch.as_tensor(stats.t(4).rvs(40, random_state=1)).expand(C, 40)
    seen = torch.ones(40, dtype=torch.bool)
    seen[::5] = False
    nu, g = torch.full((C,), 20.0, dtype=F64), generator(4)
    for _ in range(12):
        nu = draw_degrees_of_freedom(errors, z, seen, nu, g)
    grid = 2 + np.linspace(1e-4, 150, 40_000)
    log = stats.gamma(2, scale=10).logpdf(grid - 2) + stats.t(grid[:, None]).logpdf(
        z[0, seen].numpy()
    ).sum(1)
    cdf = np.exp(log - log.max()).cumsum()
    assert stats.kstest(nu.numpy(), lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-3
