"""Scores of filtering and smoothing distributions against the true states (Boustati appendix D.3.1)."""

from __future__ import annotations

from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.metrics.diagnostics import FEWEST_DRAWS, bulk_ess, split_rhat


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
    """MedAE_j = median_t |ŷ_tj − y_tj|, ŷ_t = E[y_t | y_1:t−1], over the y_tj that are there; [R, T, dy] -> [R, dy].

    For an even number of times the mean of the two middle values, as numpy has it.

    Source: Boustati (2021), eq. (D.8)."""
    return (predicted - observations).abs().nanquantile(0.5, dim=1)


def parameter_scores(draws: HoldsDraws) -> dict[str, Tensor]:
    """Mean and standard deviation of each parameter, smallest bulk ESS and largest R̂ of C chains a replicate: [R] each."""
    values = draws.values.unflatten(0, (draws.replicates, -1))  # [R, C, N, P]
    r, chains, n, p = values.shape
    pooled = values.flatten(1, 2)  # [R, C·N, P]
    out = {f"mean/{name}": pooled[..., j].mean(1) for j, name in enumerate(draws.names)}
    out |= {f"sd/{name}": pooled[..., j].std(1, correction=0) for j, name in enumerate(draws.names)}
    if n >= FEWEST_DRAWS:
        together = values.permute(1, 2, 0, 3).flatten(2)  # [C, N, R·P]: all replicates' coordinates in one call
        out["ess"] = bulk_ess(together).view(r, p).amin(1)
        if chains > 1:
            out["rhat"] = split_rhat(together).view(r, p).amax(1)
    return out
