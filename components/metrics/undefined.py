"""Scores that are not finite for a known reason: the table ``undefined`` of ``scores.yaml``, for
all kinds of problems.

A non-finite score outside the table has diverged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from components.contracts.checks import NamedScores
from components.metrics.names import SCORES

Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension


def stack_scores(each: Sequence[Scores]) -> NamedScores:
    """Scores of R replicates in one tensor [R] by name; NaN for a replicate without the score."""
    names = dict.fromkeys(name for scores in each for name in scores)
    return {
        name: torch.tensor(
            [float(scores.get(name, math.nan)) for scores in each], dtype=torch.float64
        )
        for name in names
    }


def reason(name: str, value: float, classes: bool = False) -> str | None:
    """Known reason for a non-finite score; None if it should be finite.

    ``classes``: True if its labels are classes."""
    bare = name.removeprefix("one_ahead/").split("/")[0]
    tables = (SCORES["undefined"], SCORES["undefined_for_classes"] if classes else {})
    allowed, because = next((table[bare] for table in tables if bare in table), ("", None))
    kind = "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"
    kinds = allowed.split()
    return because if kind in kinds or (kind != "nan" and "inf" in kinds) else None
