"""Results of steps and evaluations as plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

Scores = dict[str, Any]  # name -> number, or a list where replicates are a dimension

# receives the steps and the scores of an evaluation
OnScores = Callable[[int, Scores], None] | None


def plain(values: Mapping[str, Any]) -> Scores:
    """Convert tensors to numbers, or to lists where replicates are a dimension."""
    return {k: v.tolist() if isinstance(v, Tensor) else v for k, v in values.items()}


def means(scores: Scores) -> dict[str, float]:
    """One number for each name, the mean where replicates are a dimension."""
    return {k: sum(v) / len(v) if isinstance(v, list) else float(v) for k, v in scores.items()}
