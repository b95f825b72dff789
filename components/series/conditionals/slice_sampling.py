"""Slice sampling of one number in an interval, C chains in parallel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.series.conditionals.truncated_gamma import counter_uniform

MOST = 200  # shrinkages; half of them shrink an interval to 1e-60


def seeds_of(chains: int, generator: torch.Generator) -> NDArray[np.uint64]:
    """One seed for each chain, on the CPU."""
    seeds = torch.empty(chains, dtype=torch.int64, device=generator.device).random_(
        generator=generator
    )
    return seeds.cpu().numpy().view(np.uint64)


def slice_sample(
    log_density: Callable[[Tensor], Tensor],
    x: Tensor,
    low: float,
    high: float,
    generator: torch.Generator,
) -> Tensor:
    """x' [C] by a transition that leaves the density on (low, high), known up to a constant, as it
    is.

    log u uniform below the density at x, then uniform points of an interval that begins as the
    whole and shrinks to x, until one lies above.  Each chain has hashed numbers of a seed of its
    own.

    Source: Neal (2003), section 4, figure 5."""
    seeds = seeds_of(len(x), generator)

    def uniform(k: int) -> Tensor:
        with np.errstate(over="ignore"):  # a hash is meant to
            return torch.from_numpy(np.asarray(counter_uniform(seeds, k), dtype=np.float64)).to(x)

    level = log_density(x) + uniform(0).log()
    left = torch.full_like(x, low)
    right = torch.full_like(x, high)
    new = x
    is_running = torch.ones_like(x, dtype=torch.bool)
    for k in range(1, MOST + 1):
        point = left + (right - left) * uniform(k)
        above = log_density(point) >= level
        new = torch.where(is_running & above, point, new)
        is_running = is_running & ~above
        if not bool(is_running.any()):
            break
        left = torch.where(point < x, point, left)
        right = torch.where(point < x, right, point)
    return new
