"""Distances between a posterior and its normal limit."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

GRID_POINTS = 4001
REACH = 10.0  # standard deviations by which the grid extends beyond both means


def gaussian_hellinger(m: Tensor, V: Tensor, n: Tensor, W: Tensor) -> Tensor:
    """Hellinger distance H of N(m, V) and N(n, W) [], H² = 1 − ∫ √(pq).

        1 − H² = |V|^¼ |W|^¼ / |(V + W)/2|^½ · exp(−⅛ (m − n)ᵀ ((V + W)/2)⁻¹ (m − n))

    Source: Pardo (2006), section 1.3."""
    mean = 0.5 * (V + W)
    gap = m - n
    log_affinity = 0.25 * (torch.logdet(V) + torch.logdet(W)) - 0.5 * torch.logdet(mean)
    log_affinity = log_affinity - 0.125 * gap @ torch.linalg.solve(mean, gap)
    return (-torch.expm1(log_affinity)).clamp_min(0).sqrt()


def beta_normal_distances(a: float, b: float, mean: float, sd: float) -> tuple[float, float]:
    """Total variation ½ ∫ |p − q| and Hellinger distance of Beta(a, b) and N(mean, sd²) on a fine
    grid, including the normal's mass outside [0, 1]."""
    from scipy import stats

    beta = stats.beta(a, b)
    low = min(mean - REACH * sd, beta.mean() - REACH * beta.std())
    high = max(mean + REACH * sd, beta.mean() + REACH * beta.std())
    edges = np.linspace(low, high, GRID_POINTS)
    masses = [np.diff(law.cdf(edges)) for law in (beta, stats.norm(mean, sd))]
    total_variation = 0.5 * float(np.abs(masses[0] - masses[1]).sum())
    affinity = float(np.sqrt(masses[0] * masses[1]).sum())
    return total_variation, math.sqrt(max(1 - affinity, 0.0))
