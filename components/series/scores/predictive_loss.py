"""Selection criterion for a filter's β: the median over time of its standardised one-step
prediction errors."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.contracts.checks import check_same_shape
from components.errors import ConfigMismatchError
from components.maths.spacing import row_numbers

Standardised = Literal["inverse_median", "none"]


def weights(observations: Tensor, standardised: Standardised, key: str) -> Tensor:
    """Weights w_j = 1/|median_t y_tj|, or 1, of the available observations.

    The shapes are [R, T, dy] -> [R, dy]. D.3.2 prints the inverse of the median; the inverse of its
    absolute value is meant.

    Raises:
        ConfigMismatchError: a median is 0; ``key`` is the key of ``standardised``.

    Source: Boustati (2021), appendix D.3.2.
    """
    if standardised == "none":
        return torch.ones_like(observations[:, 0])
    medians = observations.nanquantile(0.5, dim=1).abs()  # [R, dy]
    dimensions = (~(medians > 0)).any(0).nonzero().flatten().tolist()
    if dimensions:
        raise ConfigMismatchError(
            f"{key}=inverse_median: the median of observation dimension {dimensions[0] + 1} is 0; set {key}=none"
        )
    return 1 / medians


def predictive_loss(observations: Tensor, predicted: Tensor, w: Tensor) -> Tensor:
    """Median over time of the weighted absolute error of one-step predictions.

        agg_t L(y_t, ŷ_t) = median_t dy⁻¹ Σ_j w_j |y_tj − ŷ_tj|,   ŷ_t = E[y_t | y_1:t−1]

    The median is over the observed y_t. Observations and predictions are [R, T, dy],
    weights [R, dy] -> [R].

    As printed, (6.13) has the loss of the states x_t and x̌_t; the loss of observation and
    prediction is meant, as in the text above it.  The median of no observations is NaN.

    Source: Boustati (2021), eq. (6.13) and appendix D.3.2.
    """
    check_same_shape("the predicted observations", predicted, observations)
    errors = (w.unsqueeze(1) * (observations - predicted).abs()).mean(2)  # [R, T]
    return errors.nanquantile(0.5, dim=1)


def smallest(losses: Tensor) -> Tensor:
    """Index of the smallest loss of each replicate; ties go to the first, and NaN is the largest;
    [G, R] -> [R].
    """
    finite_losses = losses.nan_to_num(nan=torch.inf)
    index = row_numbers(finite_losses).unsqueeze(1)
    return torch.where(finite_losses == finite_losses.amin(0), index, len(finite_losses)).amin(0)


def modal(index: Tensor) -> int:
    """The most frequent index over replicates, or the first of several; [R] -> a number."""
    counts = torch.bincount(index).tolist()
    return counts.index(max(counts))
