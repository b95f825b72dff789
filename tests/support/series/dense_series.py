"""A linear Gaussian series as one multivariate Gaussian, constructed path by path from its
definition: slow and exact."""

from __future__ import annotations

import torch

from components.series.models.linear_filter import LinearSystem


def dense(
    system: LinearSystem, q: torch.Tensor, r: torch.Tensor, times: int
) -> torch.distributions.MultivariateNormal:
    """Moments of x_1 … x_T for one set of variances q [d], r []: every z_t as a sum of z_0 and the
    noises."""
    G = system.G
    d = len(system.m0)
    mean = system.m0
    rows = []
    effects = [torch.eye(d, dtype=G.dtype)]  # effects of z_0, then of each noise, on z_t
    means = []
    for _ in range(times):
        mean = G @ mean + system.c
        effects = [G @ effect for effect in effects] + [torch.eye(d, dtype=G.dtype)]
        means.append(system.F @ mean + system.a)
        rows.append([system.F @ effect for effect in effects])
    spreads = [system.s0**2 * torch.ones(d, dtype=G.dtype)] + [q] * times
    covariance = torch.zeros(times, times, dtype=G.dtype)
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            covariance[i, j] = sum(
                (a * s * b).sum() for a, s, b in zip(row, spreads, other, strict=False)
            )
    covariance = covariance + r * torch.eye(times, dtype=G.dtype)
    return torch.distributions.MultivariateNormal(torch.stack(means), covariance)
