"""Posteriors of topics."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Topics:
    """S sets of K topics and the prior of how documents mix them."""

    topics: Tensor  # [S, K, V]
    alpha: Tensor  # [K]
