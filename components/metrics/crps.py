"""The continuous ranked probability score, in closed form for mixtures of Gaussians and as a sum
for mixtures of Poisson distributions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.predictive import GaussianMixture, PoissonMixture

PAIRS = 3 * 10**7  # maximum pairs of components over all rows and tasks, about one second


def mean_magnitude(mu: Tensor, v: Tensor) -> Tensor:
    """E|X| for X ~ N(μ, v): 2 σ φ(μ/σ) + μ (2 Φ(μ/σ) − 1)."""
    sd = v.sqrt()
    z = mu / sd
    return sd * math.sqrt(2 / math.pi) * (-0.5 * z * z).exp() + mu * torch.special.erf(
        z / math.sqrt(2)
    )


def crps_of_counts(predictive: PoissonMixture, y: Tensor) -> Tensor:
    """Σ_k (F(k) − 1{k ≥ y})² over k = 0, 1, … until F is 1, in counts [B, T]."""
    last = int(torch.maximum(predictive.quantile(1 - 1e-9), y).max())
    total = torch.zeros_like(y)
    for k in range(last + 1):
        total += (predictive.cdf(torch.full_like(y, k)) - (k >= y).to(y.dtype)).square()
    return total


def crps(predictive: GaussianMixture | PoissonMixture, y: Tensor, pairs: int = PAIRS) -> Tensor:
    """Continuous ranked probability score of a mixture of S, in the units of y [B, T].

        ∫ (F(t) − 1{t ≥ y})² dt = E|Y − y| − ½ E|Y − Y′|

    Y − Y′ of components i and j is N(μ_i − μ_j, v_i + v_j), so that the second term is a
    mean over S² pairs. The pairs are grouped by their distance j − i (mod S); k and S − k
    give the same value.  All distances are used, which is exact, if S² B T/2 is at most ``pairs``;
    otherwise distances spaced evenly over 1 … S/2 represent the others, and each of these is
    evaluated exactly.

    Source: Grimit, Gneiting, Berrocal and Johnson (2006), eq. (5); Gneiting and Raftery
    (2007), eq. (20), (21).
    """
    if isinstance(predictive, PoissonMixture):
        return crps_of_counts(predictive, y)
    mu = predictive.mu
    v = predictive.v  # [S, B, T]
    n = len(mu)
    first = mean_magnitude(y - mu, v).mean(0)
    half = n // 2
    number = max(1, min(half, pairs // mu.numel()))
    distances = torch.linspace(1, half, number).round().long().tolist() if half else []
    among = torch.zeros_like(first)  # mean over pairs i ≠ j
    weights = 0.0
    for k in distances:
        weight = 1.0 if 2 * k == n else 2.0  # distances k and n − k
        among += weight * mean_magnitude(mu - mu.roll(-k, 0), v + v.roll(-k, 0)).mean(0)
        weights += weight
    self_distance = mean_magnitude(torch.zeros_like(v), 2 * v).mean(0)  # pairs i = j
    between = self_distance if n == 1 else (self_distance + (n - 1) * among / weights) / n
    return first - 0.5 * between
