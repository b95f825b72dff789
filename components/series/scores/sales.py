"""Scores of sales forecasts: relative errors, sums, and the effect of an intervention."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.predictive import GaussianMixture


def mape(predicted: Tensor, y: Tensor) -> float:
    """100 %/T Σ_t |y_t − ŷ_t|/|y_t| over the T times at which y [T] is observed (not NaN) and not
    0; NaN where there are none.

    Source: Gallego (2021), section 1.2.4."""
    is_valid = ~y.isnan() & (y != 0)
    return float(100 * ((y - predicted)[is_valid] / y[is_valid]).abs().mean())


def score_sales_forecast(
    predictive: GaussianMixture, y: Tensor, dates: tuple[str, ...]
) -> dict[str, float]:
    """MAPE and coverage of the central 90 % interval of y [T], and the sums of predicted means and
    of observations over the times observed, of each year where there are dates.  Times at which y
    is 0 have no relative error: MAPE leaves them out, ``mape_zeros`` counts them, and where there
    are no others there is no MAPE.

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


def score_intervention(paths: Tensor, y: Tensor) -> dict[str, float]:
    """Effect of an intervention: y [H] against forecast paths [S, H] without it.

    The effect per time and in total has central 95 % intervals; the total is also given
    relative to the forecast sum. The tail probability of a sum as extreme as the observed
    one without any effect is p = min(Pr(Σ ≥ Σy), Pr(Σ ≤ Σy)), where the observed sum counts
    as one of the draws. Times without an observation do not count.

    Source: Brodersen et al. (2015).
    """
    check_shape("the paths without an intervention", paths, None, *y.shape)
    is_observed = ~y.isnan()
    without = paths[:, is_observed].sum(1)  # [S]
    observed = y[is_observed].sum()
    number = int(is_observed.sum())
    effect = observed - without
    low, middle, high = (float(effect.quantile(level)) for level in (0.025, 0.5, 0.975))
    s = len(without)
    tail = min(float((without >= observed).sum()), float((without <= observed).sum()))
    out = {
        "effect/cumulative": float(effect.mean()),
        "effect/cumulative_median": middle,
        "effect/cumulative_lower95": low,
        "effect/cumulative_upper95": high,
        "effect/average": float(effect.mean()) / number,
        "effect/average_lower95": low / number,
        "effect/average_upper95": high / number,
        "effect/tail_probability": (1 + tail) / (1 + s),
    }
    if bool((without != 0).all()):  # otherwise nothing is relative to the forecast sum
        relative = effect / without
        out["effect/relative"] = float(relative.mean())
        out["effect/relative_lower95"] = float(relative.quantile(0.025))
        out["effect/relative_upper95"] = float(relative.quantile(0.975))
    return out
