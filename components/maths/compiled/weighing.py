"""Weights from their logarithms, and the first two moments of weighted particles, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compiled

LOWEST = -708.0  # the logarithm of the least normal number
PER_OCTAVE = 1 / math.log(2)
OCTAVE, OCTAVE_REST = (
    0.693147180369123816490,
    1.90821492927058770002e-10,
)  # log 2 in two parts, the first with zeros at its end


def _remainder(z: float) -> float:
    """e^z for |z| ≤ ½ log 2: its series up to z¹²/12!, error below 2e-16."""
    e = 1 + z / 11 * (1 + z / 12)
    e = 1 + z / 7 * (1 + z / 8 * (1 + z / 9 * (1 + z / 10 * e)))
    return 1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4 * (1 + z / 5 * (1 + z / 6 * e)))))


def _weigh(log_w: Array, highest: Array, powers: Array, bits: Array, w: Array, sums: Array) -> None:
    """e^z = 2^k e^{z − k log 2}, without a branch.  ``bits`` is the memory of ``powers`` read as whole numbers: a power of two
    is the bits of its exponent."""
    systems, n = log_w.shape
    for r in range(systems):
        top = float(highest[r])
        for i in range(n):
            z = max(log_w[r, i] - top, LOWEST)
            k = math.floor(z * PER_OCTAVE + 0.5)
            w[r, i] = _remainder((z - k * OCTAVE) - k * OCTAVE_REST)
            bits[i] = (np.int64(k) + 1023) << 52 if z > LOWEST else 0
        total, squares = 0.0, 0.0
        for i in range(n):
            v = w[r, i] * powers[i]
            w[r, i] = v
            total += v
            squares += v * v
        sums[r, 0], sums[r, 1] = total, squares


def _summarise(x: Array, w: Array, sums: Array, mean: Array, variance: Array) -> None:
    systems, size, n = x.shape
    for r in range(systems):
        for d in range(size):
            pivot, first, second = float(x[r, d, 0]), 0.0, 0.0
            for i in range(n):
                away = x[r, d, i] - pivot
                first += w[r, i] * away
                second += w[r, i] * away * away
            first /= sums[r, 0]
            mean[r, d] = pivot + first
            variance[r, d] = max(second / sums[r, 0] - first * first, 0.0)


@cache
def _weighing() -> Callable[[Array, Array, Array, Array, Array, Array], None]:
    return compiled(_weigh, [_remainder], fast=True)


@cache
def _summarising() -> Callable[[Array, Array, Array, Array, Array], None]:
    return compiled(_summarise, fast=True)


def weights(log_w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights divided by the greatest of their row [R, N], the logarithm of that one [R], and the sums of weights and of their
    squares [R, 2], of log weights [R, N] on the CPU that carry no gradient; float64 whatever theirs is.

    What is less than e^−708 of the greatest is 0.  A row of which one is not a number, or all are −∞, has sums that are none.

    Raises:
        ImportError: numba is not installed.
    """
    highest = log_w.amax(1).double()  # [R]
    w, sums = log_w.new_empty(log_w.shape, dtype=torch.float64), log_w.new_empty(len(log_w), 2, dtype=torch.float64)
    powers = np.empty(log_w.shape[1])
    _weighing()(log_w.numpy(), highest.numpy(), powers, powers.view(np.int64), w.numpy(), sums.numpy())
    return w, highest, sums


def moments(x: Tensor, w: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [R, dx] of particles x [R, N, dx] that weigh w [R, N], of which ``sums`` holds the sum; of x's type.

    Taken in float64 about the first particle, in one pass: it is as near to the mean as the particles to one another.

    Raises:
        ImportError: numba is not installed.
    """
    columns = x.transpose(1, 2).contiguous()  # what vector instructions read
    mean = x.new_empty(len(x), x.shape[2], dtype=torch.float64)
    variance = torch.empty_like(mean)
    _summarising()(columns.numpy(), w.numpy(), sums.numpy(), mean.numpy(), variance.numpy())
    return mean.to(x), variance.to(x)
