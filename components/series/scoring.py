"""Score of one-step predictions of observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from components.errors import ConfigMismatchError
from components.series.scores.filtering import median_absolute_error

Weights = Literal["equal", "inverse_median", "as_released"]


@dataclass(frozen=True)
class PredictionScore:
    """Median absolute error of one-step predictions, averaged over the dimensions of the
    observations.

    Source: Boustati (2021), eq. (D.8) and appendix D.3.2; the released code."""

    # one target sequence [T, dy] for all replicates; None means each replicate's own
    against: Tensor | None = None
    weights: Weights = "equal"  # 1, 1/|median| or 1/median of a dimension, normalised
    late: bool = False  # compares ŷ_{t+1|t} with y_t

    def check(self, observations: Tensor) -> None:
        """Raises:
        ConfigMismatchError: a dimension weighted by its median has median 0.
        """
        if self.weights == "equal":
            return
        zero = (self._medians(observations) == 0).any(0).nonzero().flatten().tolist()
        if zero:
            raise ConfigMismatchError(
                f"dataset.score_weights={self.weights}: the median of observation dimension {zero[0] + 1} is 0; "
                "set dataset.score_weights=equal"
            )

    def _target(self, observations: Tensor) -> Tensor:
        # [R or 1, T, dy]
        return observations if self.against is None else self.against.unsqueeze(0)

    def _medians(self, observations: Tensor) -> Tensor:
        return self._target(observations).nanquantile(0.5, dim=1)  # [R or 1, dy]

    def __call__(self, observations: Tensor, predicted: Tensor) -> Tensor | None:
        """Score of predictions ŷ_{t|t−1} for the first times; -> [R].

        Predictions are [R, t, dy], and all observations are given [R, T, dy]. None if no time can
        be compared yet.
        """
        if self.late:
            predicted = predicted[:, 1:]
        t = predicted.shape[1]
        if t == 0:
            return None
        errors = median_absolute_error(self._target(observations)[:, :t], predicted)  # [R, dy]
        if self.weights == "equal":
            return errors.mean(1)
        medians = self._medians(observations)
        weights = 1 / (medians.abs() if self.weights == "inverse_median" else medians)
        return (weights * errors).sum(1) / weights.sum(1)  # Σ_j e_j/m_j / Σ_j 1/m_j
