"""Scrambled Sobol points in sequence order."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

HALF_UNIT = 2.0**-31  # half of the last of 30 binary digits, so that no coordinate is 0 or 1


class SobolPoints:
    """Points of a scrambled Sobol sequence in (0, 1)^d, reproducible by seed: each point is
    uniform, and together they are more even than independent points.

    Source: Owen (1995); Matoušek (1998) for the linear scrambling."""

    def __init__(self, dim: int, seed: int):
        self._engine = SobolEngine(dim, scramble=True, seed=seed)

    def block(self, start: int, n: int, like: Tensor) -> Tensor:
        """Points start … start + n − 1, [n, d]; consecutive blocks need no extra work."""
        if self._engine.num_generated > start:
            self._engine.reset()
        self._engine.fast_forward(start - self._engine.num_generated)
        points = self._engine.draw(n, dtype=torch.float64) + HALF_UNIT
        return points.to(like)
