"""Scores of filtering and smoothing distributions against the true states (Boustati appendix
D.3.1)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from components.contracts.checks import check_same_shape
from components.contracts.posteriors import HoldsDraws
from components.maths.particles.resampling import effective_sample_size
from components.metrics.diagnostics import (
    FEWEST_DRAWS,
    bulk_ess,
    resting,
    split_rhat,
    tail_ess,
    worst_coordinate_value,
)


def nmse(states: Tensor, mean: Tensor) -> Tensor:
    """NMSE_j = Σ_t (x_tj − x̂_tj)² / Σ_t x_tj²; states [R or 1, T, dx], mean [R, T, dx] -> [R, dx].

    As printed, (D.6) squares the sum over time of the errors; the sum of squared errors is meant.
    Times with an unknown truth (NaN) are left out.  The score of a state that is always 0 is
    infinite.

    Source: Boustati (2021), eq. (D.6)."""
    check_same_shape("the estimated states", mean, states)
    unknown = states.isnan()
    errors = (states - mean).square().masked_fill(unknown, 0)
    power = states.square().masked_fill(unknown, 0).sum(1)  # [R or 1, dx]
    return torch.where(power > 0, errors.sum(1) / power, errors.sum(1) + torch.inf)


def mean_over_states(by_state: Tensor) -> Tensor:
    """The mean of a score over state dimensions [R, dx] -> [R]; infinite values are left out unless
    all are infinite."""
    infinite = by_state.isinf()
    if not bool(infinite.any()):
        return by_state.mean(1)
    mean = by_state.masked_fill(infinite, 0).sum(1) / (~infinite).sum(1)
    return torch.where(infinite.all(1), torch.inf, mean)


def median_over_dimensions(by_state: Tensor) -> Tensor:
    """The median of a score over state dimensions, interpolated as in numpy; [R, dx] -> [R].

    Appendix D.3.1 describes means over dimensions; the released code plots medians of the NMSE,
    which are robust to one diverged dimension.


    Source: Boustati (2021), Fig. 6.2 and the code released with it."""
    return by_state.quantile(0.5, dim=1)


def coverage(states: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """EC_j = T⁻¹ Σ_t 1{lower_tj ≤ x_tj ≤ upper_tj}; [R, T, dx] -> [R, dx].  Times with an unknown
    truth (NaN) are left out.

    Source: Boustati (2021), eq. (D.7)."""
    check_same_shape("the intervals of the states", lower, states)
    inside = ((lower <= states) & (states <= upper)).to(states.dtype)
    return inside.sum(1) / (~states.isnan()).to(states.dtype).sum(1)


def median_absolute_error(observations: Tensor, predicted: Tensor) -> Tensor:
    """MedAE_j = median_t |ŷ_tj − y_tj|, ŷ_t = E[y_t | y_1:t−1], over the observed y_tj; [R, T, dy]
    -> [R, dy].

    For an even number of times it is the mean of the two middle values, as in numpy.

    Source: Boustati (2021), eq. (D.8)."""
    check_same_shape("the predicted observations", predicted, observations)
    return (predicted - observations).abs().nanquantile(0.5, dim=1)


def parameter_scores(
    draws: HoldsDraws, known: Mapping[str, float] | None = None
) -> dict[str, Tensor]:
    """Scores of each parameter of R replicates, [R] each.

    Every parameter has a mean and a standard deviation.  Parameters with a known true value also
    have |mean − truth| and the indicator that the central 90 % interval contains it.  Chains have
    the smallest bulk and tail ESS and the largest R̂ over non-constant parameters; weighted draws
    have the ESS of the weights.
    """
    values = draws.values.unflatten(0, (draws.replicates, -1))  # [R, C, N, P]
    r, chains, n, p = values.shape
    pooled = values.flatten(1, 2)  # [R, C·N, P]
    weights = None if draws.log_weights is None else draws.log_weights.reshape(r, -1).softmax(1)
    mean, sd = _moments(pooled, weights)
    out = {f"mean/{name}": mean[:, j] for j, name in enumerate(draws.names)}
    spread = pooled.shape[1] > 1  # one draw has no standard deviation and no interval
    if spread:
        out |= {f"sd/{name}": sd[:, j] for j, name in enumerate(draws.names)}
    for j, name in enumerate(draws.names):
        if known and name in known:
            below = (pooled[..., j] < known[name]).to(pooled)
            share = below.mean(1) if weights is None else (weights * below).sum(1)
            out[f"error/{name}"] = (mean[:, j] - known[name]).abs()
            if spread:
                out[f"coverage90/{name}"] = ((share > 0.05) & (share < 0.95)).to(pooled)
    if weights is not None:
        out["weight_ess"] = effective_sample_size(weights)
    elif n >= FEWEST_DRAWS:
        # [C, N, R·P]: all replicates' coordinates in one call
        together = values.permute(1, 2, 0, 3).flatten(2)
        each = {"ess": bulk_ess(together), "ess_tail": tail_ess(together)}
        if chains > 1:
            each["rhat"] = split_rhat(together)
        rests = resting(together).view(r, p)
        for name, value in each.items():
            out[name] = worst_coordinate_value(value.view(r, p), rests, largest=name == "rhat")
    return out


def _moments(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Means and standard deviations over draws [R, N, P] -> [R, P] each."""
    if weights is None:
        return values.mean(1), values.std(1, correction=0)
    mean = (weights.unsqueeze(1) @ values).squeeze(1)
    variance = (weights.unsqueeze(1) @ (values - mean.unsqueeze(1)).square()).squeeze(1)
    return mean, variance.sqrt()
