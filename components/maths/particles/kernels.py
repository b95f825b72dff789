"""Operations on weighted particles x [R, N, dx], weights [R, N]: compiled loops, or tensors.

Both give the same numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.compiled import loops, offspring, weighing


class Kernels(NamedTuple):
    """Operations of one engine."""

    # values [R, N], each repeated by its count, N in total per system
    repeat_values: Callable[[Tensor, Tensor], Tensor]
    # particles by row numbers [R·N], each within its own system
    take_rows: Callable[[Tensor, Tensor], Tensor]
    # number of the points (u + i)/N in each interval of the cumulative weights, u [R]
    systematic_counts: Callable[[Tensor, Tensor], Tensor]
    # number of sorted points below each of the sorted edges [R, N]
    count_points_below: Callable[[Tensor, Tensor], Tensor]
    # log w -> w = exp(log w − max log w), and Σw, Σw², log Σ exp(log w), (Σw)²/Σw² [R, 4]
    weigh: Callable[[Tensor], tuple[Tensor, Tensor]]
    # mean and variance [R, dx] of x with weights w, which sum to the first of [R, ≥ 1]
    moments: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def kernels_of(*tensors: Tensor) -> Kernels:
    """Compiled loops for tensors on the CPU that need no gradient; tensor operations otherwise."""
    is_compiled = all(loops.is_on_cpu(x) and not x.requires_grad for x in tensors)
    return COMPILED if is_compiled else TENSORS


def cumulative_weights(weights: Tensor) -> Tensor:
    """W_n = Σ_{m ≤ n} w_m / Σ_m w_m [R, N]; the last is exactly 1, so that no point exceeds it."""
    cumulated = weights.double().cumsum(1)
    return cumulated.div_(cumulated[:, -1:].clone())


def count_between(below: Tensor) -> Tensor:
    """Number of points between consecutive edges, from the number below each [R, N]."""
    return torch.diff(below, dim=1, prepend=torch.zeros_like(below[:, :1]))


def _repeat_values(values: Tensor, counts: Tensor) -> Tensor:
    repeated = values.flatten().repeat_interleave(counts.flatten(), output_size=counts.numel())
    return repeated.view_as(values)


def _take_rows(x: Tensor, rows: Tensor) -> Tensor:
    return x.flatten(0, 1).index_select(0, rows).view_as(x)


def _take_columns(x: Tensor, rows: Tensor) -> Tensor:
    """Compiled version, for particles that are contiguous by coordinate."""
    columns = x.transpose(1, 2)
    if columns.is_contiguous():
        return offspring.take_rows(columns, rows).transpose(1, 2)
    return _take_rows(x, rows)


def _systematic_counts(weights: Tensor, u: Tensor) -> Tensor:
    n = weights.shape[1]
    edges = cumulative_weights(weights)
    below = (edges * n - u.unsqueeze(1)).ceil_().clamp_(0, n)
    # N − u would be rounded if u is close to 1
    return count_between(torch.where(edges == 1, n, below).long())


def _weigh(log_w: Tensor) -> tuple[Tensor, Tensor]:
    log_w = log_w.double()
    highest = log_w.detach().amax(1)
    w = (log_w - highest.unsqueeze(1)).exp()
    total = w.sum(1)
    squares = w.square().sum(1)
    return w, torch.stack([total, squares, highest + total.log(), total.square() / squares], 1)


def _moments(x: Tensor, w: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    shares = (w / sums[:, :1]).to(x).unsqueeze(1)
    mean = shares @ x  # [R, 1, dx]
    # centred first, because positions are 10³ times their spread
    variance = shares @ (x - mean).square()
    return mean.squeeze(1), variance.squeeze(1)


TENSORS = Kernels(
    repeat_values=_repeat_values,
    take_rows=_take_rows,
    systematic_counts=_systematic_counts,
    count_points_below=torch.searchsorted,
    weigh=_weigh,
    moments=_moments,
)
COMPILED = Kernels(
    repeat_values=offspring.repeat_values,
    take_rows=_take_columns,
    systematic_counts=offspring.systematic_counts,
    count_points_below=offspring.count_points_below,
    weigh=weighing.weights,
    moments=weighing.moments,
)
