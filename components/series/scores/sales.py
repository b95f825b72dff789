"""Scores of sales forecasts: relative errors, sums, and the effect of an intervention."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.posteriors import ForecastMoments
from components.contracts.predictive import GaussianMixture


def mape(predicted: Tensor, y: Tensor) -> float:
    """100 %/T Σ_t |y_t − ŷ_t|/|y_t| over the T times at which y [T] is observed (not NaN) and
    nonzero; NaN without such times.

    Source: Gallego (2021), section 1.2.4."""
    is_valid = ~y.isnan() & (y != 0)
    return float(100 * ((y - predicted)[is_valid] / y[is_valid]).abs().mean())


def score_sales_forecast(
    predictive: GaussianMixture, y: Tensor, dates: tuple[str, ...]
) -> dict[str, float]:
    """MAPE and coverage of the central 90 % interval of y [T], and the sums of predicted means and
    of observations over the observed times, by year if there are dates.  Times with y = 0 have no
    relative error: MAPE leaves them out and ``mape_zeros`` counts them; without other times MAPE is
    omitted.

    Source: Gallego (2021), section 1.2.4, Table 1.1."""
    check_shape("the forecasts", predictive.mu, None, *y.shape, None)
    is_observed = ~y.isnan()
    if not bool(is_observed.any()):
        return {}
    mean = predictive.mean[:, 0]
    cdf = predictive.cdf(torch.where(is_observed, y, mean).unsqueeze(1))[:, 0]
    zeros = int((y == 0).sum())
    out = {"mape": mape(mean, y)} if zeros < int(is_observed.sum()) else {}
    out |= {"mape_zeros": float(zeros)} if zeros else {}
    out["coverage90"] = float(((cdf - 0.5).abs() <= 0.45)[is_observed].double().mean())
    years = sorted({date[:4] for date in dates}) if dates else []
    spans = {
        f"/{year}": torch.tensor([date.startswith(year) for date in dates], device=y.device)
        for year in years
    }
    for name, within in {
        "": torch.ones_like(is_observed),
        **(spans if len(years) > 1 else {}),
    }.items():
        both = is_observed & within
        if bool(both.any()):
            out[f"cumulative{name}"] = float(mean[both].sum())
            out[f"cumulative_observed{name}"] = float(y[both].sum())
    return out


def score_intervention(forecast: ForecastMoments, y: Tensor) -> dict[str, float]:
    """Effect of an intervention: y [H] against its forecast without the intervention.

    The sum of the forecast values is Gaussian given each draw of the parameters, so a single draw
    also has an interval.  The total effect and the effect per time have central 95 % intervals; the
    total is also given relative to the expected sum, unless the interval of the sum contains 0. The
    tail probability of the observed sum without any effect is p = min(Pr(Σ ≥ Σy), Pr(Σ ≤ Σy)).
    Times without an observation are left out.

    Source: Brodersen et al. (2015).
    """
    check_shape("the forecast without an intervention", forecast.mean, None, *y.shape)
    is_observed = ~y.isnan()
    number = int(is_observed.sum())
    if not number:
        return {}
    without = forecast.sums(is_observed.to(forecast.mean).unsqueeze(0))  # [S, 1, 1]
    total = y[is_observed].sum()
    observed = float(total)
    expected, low, middle, high = (
        float(value)
        for value in (without.mean, *(without.quantile(level) for level in (0.025, 0.5, 0.975)))
    )
    reflected = GaussianMixture(-without.mu, without.v)
    out = {
        "effect/cumulative": observed - expected,
        "effect/cumulative_median": observed - middle,
        "effect/cumulative_lower95": observed - high,
        "effect/cumulative_upper95": observed - low,
        "effect/average": (observed - expected) / number,
        "effect/average_lower95": (observed - high) / number,
        "effect/average_upper95": (observed - low) / number,
        "effect/tail_probability": min(float(without.cdf(total)), float(reflected.cdf(-total))),
    }
    if low * high > 0:
        lower, upper = sorted((observed / low - 1, observed / high - 1))
        out["effect/relative"] = observed / expected - 1
        out |= {"effect/relative_lower95": lower, "effect/relative_upper95": upper}
    return out
