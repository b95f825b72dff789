"""Gaps of rows, filled by a model of the whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.predictive import GaussianMixture
from components.metrics import regression

if TYPE_CHECKING:
    import pandas as pd


def scores(filled: GaussianMixture, gaps: Tensor, truth: Tensor) -> dict[str, float]:
    """``gap_rmse`` of the mean, ``gap_nlpp`` = −mean log p(value | observed values of its row),
    ``gap_coverage90`` and ``gap_crps`` over all removed values whose truth is known.

    Args:
        filled: law of every value [S, B, I].
        gaps: True where a value was removed [B, I].
        truth: rows without gaps, NaN where nobody knows [B, I].

    Source: Salakhutdinov and Mnih (2008), section 5 (RMSE of entries held out)."""
    scored = gaps & ~truth.isnan()
    if not bool(scored.any()):
        return {}
    y = truth[scored].unsqueeze(1)
    entries = GaussianMixture(filled.mu[:, scored].unsqueeze(2), filled.v[:, scored].unsqueeze(2))
    named = regression.scores(entries, y, torch.ones_like(y, dtype=torch.bool), ["value"])
    return {f"gap_{name}": value for name, value in named.items()}


def list_gaps(filled: GaussianMixture, gaps: Tensor, truth: Tensor) -> pd.DataFrame:
    """Row and column of each gap, from 1, mean and sd of its value, and the truth (NaN: unknown)."""
    import pandas as pd

    row, column = gaps.nonzero(as_tuple=True)
    values = {"mean": filled.mean, "sd": filled.variance.sqrt(), "truth": truth}
    named = {name: value[gaps].cpu().numpy() for name, value in values.items()}
    return pd.DataFrame({"row": row.cpu() + 1, "column": column.cpu() + 1} | named)
