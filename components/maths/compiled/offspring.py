"""Compiled offspring counts of particles from points between cumulative weights, and repetition of
particles by their counts."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compiled


def _cumulate(weights: Array, edges: Array) -> float:
    """Cumulative sums of a row, in four interleaved quarters.

    An addition waits for the previous one; four independent sums do not wait for each
    other.
    """
    quarter = len(weights) // 4
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    for i in range(quarter):
        first += weights[i]
        second += weights[quarter + i]
        third += weights[2 * quarter + i]
        fourth += weights[3 * quarter + i]
        edges[i] = first
        edges[quarter + i] = second
        edges[2 * quarter + i] = third
        edges[3 * quarter + i] = fourth
    second += first
    third += second
    for i in range(quarter):
        edges[quarter + i] += first
        edges[2 * quarter + i] += second
        edges[3 * quarter + i] += third
    total = third + fourth
    for i in range(4 * quarter, len(weights)):
        total += weights[i]
        edges[i] = total
    return total


@compiled()
def _count(weights: Array, u: Array, counts: Array) -> None:
    systems, n = weights.shape
    edges = np.empty(n)
    for r in range(systems):
        total = _cumulate(weights[r], edges)
        scale = n / total
        for i in range(n):  # number of points below
            below = min(n, np.int64(math.ceil(edges[i] * scale - u[r])))
            # no weight is left, for any rounding
            counts[r, i] = n if edges[i] == total else below
        for i in range(n - 1, 0, -1):
            counts[r, i] -= counts[r, i - 1]


@compiled()
def _repeat(values: Array, counts: Array, repeated: Array) -> None:
    systems, n = counts.shape
    for r in range(systems):
        place = r * n
        for i in range(n):
            value = values[r, i]
            end = place + counts[r, i]
            # branch-free: surplus entries are overwritten
            repeated[place] = repeated[place + 1] = value
            place += 2
            while place < end:
                repeated[place] = value
                place += 1
            place = end


@compiled()
def _take(columns: Array, rows: Array, taken: Array) -> None:
    systems, size, n = columns.shape
    for r in range(systems):
        for d in range(size):
            for i in range(n):
                taken[r, d, i] = columns[r, d, rows[r * n + i] - r * n]


@compiled()
def _below(points: Array, edges: Array, found: Array) -> None:
    """Advance past the next point or the next edge, branch-free."""
    many = points.shape[1]
    n = edges.shape[1]
    for r in range(len(points)):
        i = 0
        j = 0
        while i < many and j < n:
            found[r, j] = i
            less = points[r, i] < edges[r, j]
            i += less
            j += 1 - less
        while j < n:
            found[r, j] = i
            j += 1


def systematic_counts(weights: Tensor, u: Tensor) -> Tensor:
    """Number of points (u_r + i)/N in each interval of the cumulative weights [R, N], on the CPU;
    [R, N] long."""
    counts = torch.empty(weights.shape, dtype=torch.int64)
    _count(weights.detach().numpy(), u.numpy(), counts.numpy())
    return counts


def repeat_values(values: Tensor, counts: Tensor) -> Tensor:
    """The values [R, N], each repeated by its count, N in every row; [R, N]."""
    buffer = values.new_empty(counts.numel() + 2)
    _repeat(values.detach().numpy(), counts.numpy(), buffer.numpy())
    return buffer[:-2].view_as(counts)


def take_rows(columns: Tensor, rows: Tensor) -> Tensor:
    """Columns [R, dx, N] of row numbers [R·N] of the particles, each in its own system; [R, dx,
    N]."""
    out = torch.empty_like(columns)
    _take(columns.numpy(), rows.numpy(), out.numpy())
    return out


def count_points_below(points: Tensor, edges: Tensor) -> Tensor:
    """Number of points less than each edge, both sorted along dimension 1, [R, M], [R, N] on the
    CPU -> [R, N] long."""
    counts = torch.empty(edges.shape, dtype=torch.int64)
    _below(points.numpy(), edges.numpy(), counts.numpy())
    return counts
