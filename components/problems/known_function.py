"""Real labels from a known function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from components.problems.supervised import Supervised


@dataclass
class KnownFunction(Supervised):
    """y = f₀(x) + N(0, σ²); f₀ is in every Sobolev space of order below ``smoothness``."""

    f0: Callable[[Tensor], Tensor] | None = None  # x [B, 1] -> [B]
    smoothness: float = float("inf")
    noise: float = 0.0  # σ²
