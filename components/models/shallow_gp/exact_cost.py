"""Memory estimate of an exact Gaussian process, ∝ N² in the labels of a group.

This module does not import torch, so that ``runner doctor`` works without it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from components.errors import ConfigMismatchError
from components.memory import GIB, free_device_memory

if TYPE_CHECKING:
    from components.models.shallow_gp.labels import Labels

BLOCK = 2**24  # elements of a covariance that are computed together
# [G, n, n] matrices at the peak of three bounds with their gradients, in a process that keeps freed
# memory: 8.8 for one group of 4,000, 9.9 to 13.4 of several of 1,300 to 3,200 (κ, its slope, K with and
# without the mask, the factor, the inverse, …).  Larger ones are computed in blocks, of which
# MATRICES are stored; K and the factor are stored as a whole, and one of them twice with a mask.
MATRICES = 14
WHOLE = 3


def _matrix_bytes(labels: Labels) -> float:
    """Bytes of the matrices in a step."""
    elements = labels.mask.numel() * labels.mask.shape[-1]
    matrices = MATRICES * min(elements, BLOCK) + WHOLE * max(elements - BLOCK, 0)
    return matrices * labels.x.element_size()


def largest_exact(free: float) -> int:
    """Labels of one exact Gaussian process in float64 that fit into ``free`` bytes, if more than
    4,096."""
    return math.isqrt(max(int(free / 8) - (MATRICES - WHOLE) * BLOCK, 0) // WHOLE)


def describe_free_memory(free: float | None) -> str:
    """Text of the free bytes, if known, and of the largest exact Gaussian process that fits."""
    if free is None:
        return "unknown on this system"
    labels = largest_exact(free)
    fits = f", an exact Gaussian process of {labels:,} labels fits" if labels else ""
    return f"{free / GIB:.1f} GiB available{fits}"


def raise_if_too_large(
    labels: Labels, key: str, instead: str, by_task: Labels | None = None
) -> None:
    """Check the memory before allocating matrices; ``by_task`` has the labels in the layout of
    ``model.top=independent``.

    Raises:
        ConfigMismatchError: the matrices exceed the free memory; the message suggests smaller
            alternatives."""
    size = _matrix_bytes(labels)
    free = free_device_memory(labels.x.device)
    if free is None or size <= free:
        return
    mends = [instead]
    if by_task is not None and _matrix_bytes(by_task) <= free:
        mends.append(f"model.top=independent ({_matrix_bytes(by_task) / GIB:,.1f} GiB)")
    if labels.x.element_size() == 8 and size / 2 <= free:
        mends.append(f"dtype=float32 ({size / 2 / GIB:,.1f} GiB)")
    groups, n = labels.mask.shape
    shape = f"{groups} × {n:,} × {n:,}".removeprefix("1 × ")
    raise ConfigMismatchError(
        f"{key}: exact for {labels.total:,} labels, matrices of {shape}, needs "
        f"{size / GIB:,.1f} GiB but {free / GIB:,.1f} are free; use {', '.join(mends)} or fewer training rows"
    )
