"""States of chains over a structural series, and the random numbers of their sweeps.

The random numbers can be drawn ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Place:
    """Current state of C chains."""

    sigma: Tensor  # [C, S]
    phi: Tensor  # [C, Q]
    gamma: Tensor  # included columns [C, p] bool
    beta: Tensor  # [C, p], 0 where they are out
    nu: Tensor  # [C]; ∞: errors are Gaussian
    precisions: Tensor  # λ [C, n]; [C, 0]: all are 1


@dataclass(frozen=True)
class SweepRandomNumbers:
    """The random numbers of K sweeps that do not hang on what they draw."""

    first: Tensor  # normal [K, C, d]
    states: Tensor  # normal [K, C, n − 1, k]
    observations: Tensor  # normal [K, C, n]
    columns: Tensor  # normal [K, C, p]
    u: Tensor  # uniform [K, C, p + 1]
    g: Tensor  # Gamma(shape_j, 1) of the S scales, the first twice [K, C, S + 1]


def predraw_numbers(
    lead: tuple[int, int], shapes: tuple[tuple[int, ...], ...], u: int, generator: torch.Generator
) -> tuple[list[Tensor], Tensor]:
    """Normal numbers [..., shape] and uniform ones [..., u] in float64; on the CPU NumPy's, of a
    seed drawn from the generator: they take half the time of torch's."""
    if generator.device.type != "cpu":
        device = generator.device
        dtype = torch.float64
        rest = [
            torch.randn(*lead, *shape, generator=generator, device=device, dtype=dtype)
            for shape in shapes
        ]
        return rest, torch.rand(*lead, u, generator=generator, device=device, dtype=dtype)
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=generator))
    drawing = np.random.Generator(np.random.SFC64(seed))
    normals = [torch.from_numpy(drawing.standard_normal((*lead, *shape))) for shape in shapes]
    return normals, torch.from_numpy(drawing.random((*lead, u)))
