"""Missing values of rows, imputed by a model of the whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from components.contracts.predictive import GaussianMixture
from components.metrics import regression

if TYPE_CHECKING:
    import pandas as pd


class FilledGaps(NamedTuple):
    """Predictive distributions of G missing values, each given the observed values of its row."""

    places: Tensor  # row and column of each gap [G, 2]
    law: GaussianMixture  # [S, G, 1]
    truth: Tensor | None  # the true values [G, 1]; None if not known

    def scores(self) -> dict[str, float]:
        """``gap_rmse`` of the mean, ``gap_nlpp`` = −mean log p(value | observed values of its row),
        ``gap_coverage90`` and ``gap_crps``.

        Source: Salakhutdinov and Mnih (2008), section 5 (RMSE of held-out entries)."""
        if self.truth is None:
            return {}
        everywhere = torch.ones_like(self.truth, dtype=torch.bool)
        named = regression.scores(self.law, self.truth, everywhere, ["value"])
        return {f"gap_{name}": value for name, value in named.items()}

    def table(self) -> pd.DataFrame:
        """Row and column of each gap, from 1, mean and sd of its value, and the truth if known."""
        import pandas as pd

        moments = [self.law.mean, self.law.variance.sqrt()]
        names = ["row", "column", "mean", "sd"]
        if self.truth is not None:
            moments.append(self.truth)
            names.append("truth")
        table = pd.DataFrame(torch.cat([self.places + 1, *moments], 1).cpu().numpy(), columns=names)
        return table.astype({"row": int, "column": int})
