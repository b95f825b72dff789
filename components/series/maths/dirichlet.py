"""The symmetric Dirichlet distribution, in terms of log-probabilities."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SMALLEST = 1e-30  # of a drawn probability: its logarithm must be finite


def log_dirichlet(log_x: Tensor, concentration: float) -> Tensor:
    """log Dir(x | a 1) from log x [..., n] -> [...]: log Γ(na) − n log Γ(a) + (a − 1) Σ log x.

    Source: Bishop (2006), eq. (2.38)."""
    n = log_x.shape[-1]
    constant = math.lgamma(n * concentration) - n * math.lgamma(concentration)
    return constant + (concentration - 1) * log_x.sum(-1)


def draw_simplex(
    shape: tuple[int, ...], concentration: float, generator: torch.Generator
) -> Tensor:
    """Draws of Dir(a 1) over the last dimension, in float64: Gamma variables, normalised."""
    shapes = torch.full(shape, concentration, device=generator.device, dtype=torch.float64)
    x = torch._standard_gamma(shapes, generator=generator).clamp_min(SMALLEST)
    return x / x.sum(-1, keepdim=True)
