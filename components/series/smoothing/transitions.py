"""Transition densities from N earlier to K later particles, in blocks of pairs.

R replicates are evaluated in parallel.

This is the O(N K) part of every particle smoother: FFBS and backward simulation
normalise over the earlier particles, the two-filter formula sums over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian, TransitionDensity
from components.errors import NumericalError
from components.series.models.linear_gaussian_ssm import factor

BLOCK = 1 << 20  # pairs in memory at a time: 4 MB in float32, which fits in cache


class Pairs(NamedTuple):
    """Pairs (x'_k, x_n) of some replicates and some later particles; log w_n + log f_t(x'_k | x_n)
    = logits + constant."""

    replicates: slice
    later: slice
    logits: Tensor  # [r, k, N], overwritten by the next block
    constant: Tensor  # terms that do not depend on n [r, k, 1]


def backward_kernel(block: Pairs, t: int) -> Tensor:
    """w_n f_t(x'_k | x_n) / Σ_l w_l f_t(x'_k | x_l), written over the block's logits; [r, k, N].

    Raises NumericalError if no x_l can move to x'_k."""
    kernel = torch.softmax(block.logits, 2, out=block.logits)
    if not torch.isfinite(kernel[:, :, 0]).all():
        raise NumericalError(
            f"no particle of time {t - 1} can move to one of time {t}",
            "raise inference.filter.particles",
        )
    return kernel


def pairs(
    model: TransitionDensity, later: Tensor, earlier: Tensor, log_w: Tensor, t: int
) -> Iterator[Pairs]:
    """log w_n + log f_t(x'_k | x_n) of all pairs; later x' [R, K, dx] of time t, earlier x [R, N,
    dx] with log w.

    For x_t = f_t(x_{t−1}) + N(0, L Lᵀ), u = L⁻¹ x' and v = L⁻¹ f_t(x): −½|u − v|² = (u·v − ½|v|²) −
    ½|u|², one matrix product.  u and v are centred at the mean of v, because float32 would lose the
    difference of large squares."""
    if isinstance(model, AdditiveGaussian) and model.Q.dim() == 2:
        yield from _gaussian(model, later, earlier, log_w, t)
        return
    r = len(later)
    k = later.shape[1]
    n = earlier.shape[1]
    rows = max(1, BLOCK // (r * n))
    for start in range(0, k, rows):
        some = slice(start, min(start + rows, k))
        ahead = later[:, some].unsqueeze(2).expand(-1, -1, n, -1)  # [R, k, N, dx]
        log_f = model.log_transition(
            ahead.flatten(1, 2),
            earlier.unsqueeze(1).expand(-1, ahead.shape[1], -1, -1).flatten(1, 2),
            t,
        ).unflatten(1, (-1, n))
        yield Pairs(slice(0, r), some, log_f.add_(log_w.unsqueeze(1)), log_f.new_zeros(()))


def _gaussian(
    model: AdditiveGaussian, later: Tensor, earlier: Tensor, log_w: Tensor, t: int
) -> Iterator[Pairs]:
    r = len(later)
    k = later.shape[1]
    n = earlier.shape[1]
    L = factor(model.Q, "Q")
    ahead = model.transition_mean(earlier, t)  # [R, N, dx]
    centre = ahead.mean(1, keepdim=True)
    v = torch.linalg.solve_triangular(L, (ahead - centre).mT, upper=False)  # [R, dx, N]
    u = torch.linalg.solve_triangular(L, (later - centre).mT, upper=False).mT  # [R, K, dx]
    # [R, dx + 1, N]
    from_earlier = torch.cat([v, (log_w - 0.5 * v.square().sum(1)).unsqueeze(1)], 1)
    from_later = torch.cat([u, u.new_ones(r, k, 1)], 2)  # [R, K, dx + 1]
    normaliser = L.diagonal().log().sum() + 0.5 * len(L) * torch.log(2 * torch.pi * u.new_ones(()))
    constant = -0.5 * u.square().sum(2, keepdim=True) - normaliser  # [R, K, 1]
    replicates = max(1, BLOCK // (k * n))
    rows = max(1, min(k, BLOCK // n))
    buffer = u.new_empty(replicates * rows * n)
    for first in range(0, r, replicates):
        for start in range(0, k, rows):
            these = slice(first, min(first + replicates, r))
            some = slice(start, min(start + rows, k))
            left_factor = from_later[these, some]
            logits = buffer[: left_factor.shape[0] * left_factor.shape[1] * n].view(
                left_factor.shape[0], left_factor.shape[1], n
            )
            torch.bmm(left_factor, from_earlier[these], out=logits)
            yield Pairs(these, some, logits, constant[these, some])
