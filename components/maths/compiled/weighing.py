"""Compiled weights from their logarithms, and the first two moments of weighted particles."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compiled

LOG_MIN_NORMAL = -708.0  # the logarithm of the smallest normal number
LOG2_E = 1 / math.log(2)
OCTAVE = 0.693147180369123816490  # log 2 in two parts, the first with trailing zeros
OCTAVE_REST = 1.90821492927058770002e-10


def _exp_series(z: float) -> float:
    """e^z for |z| ≤ ½ log 2: its series up to z¹²/12!, error below 2e-16."""
    e = 1.0
    for k in range(12, 0, -1):
        e = 1 + z / k * e
    return e


@compiled(fast=True)
def _weigh(log_w: Array, highest: Array, powers: Array, bits: Array, w: Array, sums: Array) -> None:
    """e^z = 2^k e^{z − k log 2}, branch-free.  ``bits`` is the memory of ``powers`` read as
    integers, because a power of two is given by the bits of its exponent."""
    systems, n = log_w.shape
    for r in range(systems):
        top = float(highest[r])
        for i in range(n):
            z = max(log_w[r, i] - top, LOG_MIN_NORMAL)
            k = math.floor(z * LOG2_E + 0.5)
            w[r, i] = _exp_series((z - k * OCTAVE) - k * OCTAVE_REST)
            bits[i] = (np.int64(k) + 1023) << 52 if z > LOG_MIN_NORMAL else 0
        total = 0.0
        squares = 0.0
        for i in range(n):
            v = w[r, i] * powers[i]
            w[r, i] = v
            total += v
            squares += v * v
        sums[r, 0] = total
        sums[r, 1] = squares
        sums[r, 2] = top + math.log(total)
        sums[r, 3] = total * total / squares


@compiled(fast=True)
def _summarise(x: Array, w: Array, sums: Array, mean: Array, variance: Array) -> None:
    systems, size, n = x.shape
    for r in range(systems):
        for d in range(size):
            pivot = float(x[r, d, 0])
            first = 0.0
            second = 0.0
            for i in range(n):
                away = x[r, d, i] - pivot
                first += w[r, i] * away
                second += w[r, i] * away * away
            first /= sums[r, 0]
            mean[r, d] = pivot + first
            variance[r, d] = max(second / sums[r, 0] - first * first, 0.0)


def weights(log_w: Tensor) -> tuple[Tensor, Tensor]:
    """Weights relative to the largest of each row, and their sums, from log weights [R, N] on the
    CPU.

    Returns the weights [R, N], and [R, 4]: their sum, the sum of their squares, the logarithm of
    the sum of the unscaled weights, and the effective sample size.  They are not differentiable,
    and float64 for every dtype.  A weight below e^−708 of the largest is 0.  The logarithm of a row
    with a NaN, or with only −∞, is not finite.
    """
    # [R], which sets the precision of the differences in numba
    highest = log_w.amax(1).double().numpy()
    w = torch.empty(log_w.shape, dtype=torch.float64)
    sums = torch.empty(len(log_w), 4, dtype=torch.float64)
    powers = np.empty(log_w.shape[1])
    _weigh(log_w.numpy(), highest, powers, powers.view(np.int64), w.numpy(), sums.numpy())
    return w, sums


def moments(x: Tensor, w: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [R, dx] of particles x [R, N, dx] with weights w [R, N]; the first entry of
    ``sums`` is their sum; with the dtype of x.

    Computed in float64 about the first particle in one pass, which is accurate because the first
    particle is as close to the mean as particles are to each other.
    """
    columns = x.transpose(1, 2).contiguous()  # layout for vector instructions
    mean = columns.new_empty(columns.shape[:2])
    variance = columns.new_empty(columns.shape[:2])
    _summarise(columns.numpy(), w.numpy(), sums.numpy(), mean.numpy(), variance.numpy())
    return mean, variance
