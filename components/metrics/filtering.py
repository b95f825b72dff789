"""Scores of filtering distributions against the true states (Boustati appendix D.3.1)."""

from __future__ import annotations

from torch import Tensor


def nmse(states: Tensor, mean: Tensor) -> Tensor:
    """NMSE_j = Σ_t (x_tj − x̂_tj)² / Σ_t x_tj²; states [R or 1, T, dx], mean [R, T, dx] -> [R, dx].

    As printed, (D.6) squares the sum over time of the errors; the sum of squared errors is meant.

    Source: Boustati (2021), eq. (D.6)."""
    return (states - mean).square().sum(1) / states.square().sum(1)


def coverage(states: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """EC_j = T⁻¹ Σ_t 1{lower_tj ≤ x_tj ≤ upper_tj}; [R, T, dx] -> [R, dx].

    Source: Boustati (2021), eq. (D.7)."""
    return ((lower <= states) & (states <= upper)).to(states.dtype).mean(1)


def median_absolute_error(observations: Tensor, predicted: Tensor) -> Tensor:
    """MedAE_j = median_t |ŷ_tj − y_tj|, ŷ_t = E[y_t | y_1:t−1]; [R, T, dy] -> [R, dy].

    For an even number of times the mean of the two middle values, as numpy has it.

    Source: Boustati (2021), eq. (D.8)."""
    return (predicted - observations).abs().quantile(0.5, dim=1)
