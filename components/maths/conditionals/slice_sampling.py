"""Slice sampling of one number in an interval, C of them at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MOST = 200  # shrinkages, of which an interval is 1e-60 after half


def sliced(
    log_density: Callable[[Tensor], Tensor], x: Tensor, low: float, high: float, generator: torch.Generator
) -> Tensor:
    """x' [C] by a transition that leaves the density on (low, high), known up to a constant, as it is.

    log u uniform below the density at x, then uniform points of an interval that begins as the whole and shrinks to x, until
    one lies above.

    Source: Neal (2003), section 4, figure 5."""

    def uniform() -> Tensor:
        return torch.rand(x.shape, generator=generator, device=generator.device, dtype=x.dtype)

    level = log_density(x) + (1 - uniform()).log()
    left, right, new = torch.full_like(x, low), torch.full_like(x, high), x
    going = torch.ones_like(x, dtype=torch.bool)
    for _ in range(MOST):
        point = left + (right - left) * uniform()
        above = log_density(point) >= level
        new = torch.where(going & above, point, new)
        going = going & ~above
        if not bool(going.any()):
            break
        left, right = torch.where(point < x, point, left), torch.where(point < x, right, point)
    return new
