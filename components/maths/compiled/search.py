"""A search in order, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop


def _below(points: Array, edges: Array, found: Array) -> None:
    """Either the next point or the next edge is passed, without a branch."""
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


@cache
def _loop() -> Callable[[Array, Array, Array], None]:
    return compile_loop(_below)


def count_points_below(points: Tensor, edges: Tensor) -> Tensor:
    """How many points are less than each edge, both in order along dimension 1 [R, M], [R, N], on
    the CPU -> [R, N] long.

    Raises:
        ImportError: numba is not installed.
    """
    counts = torch.empty(edges.shape, dtype=torch.int64)
    _loop()(points.numpy(), edges.numpy(), counts.numpy())
    return counts
