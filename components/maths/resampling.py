"""Resampling of weighted particles, for R particle systems at once."""

from __future__ import annotations

import torch
from torch import Tensor


def effective_sample_size(weights: Tensor) -> Tensor:
    """ESS = 1 / Σ_n w_n² of normalised weights [R, N] -> [R], between 1 and N."""
    return 1 / weights.square().sum(1)


def systematic_counts(weights: Tensor, u: Tensor) -> Tensor:
    """Offspring of each particle: how many of the points (u + i)/N, i = 0 … N−1, fall into its part of the cumulated weights.

    Every count is ⌊N w_n⌋ or ⌈N w_n⌉ and E[count_n] = N w_n.  Weights [R, N] need not be normalised; u [R] in [0, 1).
    Cumulated in float64: in float32 the last of 10⁵ weights can lose its share.

    Source: Kitagawa (1996), appendix; Carpenter, Clifford & Fearnhead (1999)."""
    n = weights.shape[1]
    cumulated = weights.double().cumsum(1)
    cumulated = cumulated / cumulated[:, -1:]  # its last entry is now 1 exactly, so the counts add up to N
    below = torch.ceil(n * cumulated - u.double().unsqueeze(1)).clamp_(0, n).long()  # points below each edge  # [R, N]
    return torch.diff(below, dim=1, prepend=torch.zeros_like(below[:, :1]))


def systematic_ancestors(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Ancestors drawn by systematic resampling, as row numbers of the particles folded to [R·N, …]; returns [R·N].

    One uniform per particle system, counts repeated: O(N) without a search."""
    r, n = weights.shape
    u = torch.rand(r, generator=generator, device=weights.device, dtype=torch.float64)
    counts = systematic_counts(weights, u)
    return torch.repeat_interleave(counts.flatten(), output_size=r * n)
