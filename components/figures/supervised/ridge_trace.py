"""Hoerl and Kennard's report: the ridge trace, and bias and variance against the penalty."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.figures.style import (
    BLACK,
    BLUE,
    GREY,
    RED,
    Figure,
    colour_of,
    legend_below,
    new_figure,
    series_style,
)
from components.maths.least_squares import LinearData

RULES = {"gcv": "GCV", "loo": "leave one out", "evidence": "evidence", "hkb": "D σ̂²/‖β̂‖²"}
DASHES: dict[str, Any] = {
    "gcv": "-",
    "loo": (0, (1, 1.5)),
    "evidence": (0, (5, 2)),
    "hkb": (0, (4, 1.5, 1, 1.5)),
}


def ridge_trace(
    data: LinearData,
    penalties: Tensor,
    path: Tensor,
    selected: dict[str, float],
    *,
    variance: Tensor,
    bias: Tensor,
    least_squares_risk: float,
) -> Figure:
    """Left: coefficients against λ, with the λ chosen by each rule.  Right: variance, squared bias
    and their sum.

    Args:
        data: the regression with D coefficients.
        penalties: λ, increasing [Λ].
        path: estimates of each [Λ, D].
        selected: λ by every rule.
        variance: variance of each [Λ].
        bias: squared bias of each [Λ].
        least_squares_risk: risk without a penalty.
    """
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.8, height=3.9)
    penalties = penalties.cpu()
    for j, name in enumerate(data.names):
        left_axis.plot(penalties, path[:, j].cpu(), **series_style(j), label=name)
        if data.is_simulated:
            left_axis.plot(
                float(penalties[0]),
                float(data.beta[j]),
                "X",
                color=colour_of(j),
                markersize=6,
                clip_on=False,
            )
    truth = " (crosses: true β)" if data.is_simulated else ""
    left_axis.set(
        xscale="log",
        xlabel="penalty λ",
        ylabel="coefficient",
        title=f"Hoerl & Kennard: ridge trace{truth}",
    )

    variance = variance.cpu()
    bias = bias.cpu()
    right_axis.plot(penalties, variance, color=BLUE, label="variance")
    right_axis.plot(penalties, bias, color=RED, label="squared bias")
    right_axis.plot(penalties, variance + bias, color=BLACK, linewidth=2, label="risk E‖β − β̂(λ)‖²")
    right_axis.axhline(least_squares_risk, color=GREY, linestyle="--", label="least squares")
    whose = "true β" if data.is_simulated else "estimated β"
    right_axis.set(
        xscale="log", xlabel="penalty λ", ylabel="squared error", title=f"Risk, exact, {whose}"
    )
    right_axis.set_ylim(0, 1.6 * least_squares_risk)
    for ax in (left_axis, right_axis):
        for rule, penalty in selected.items():
            label = f"λ by {RULES[rule]}"
            ax.axvline(penalty, color=BLACK, lw=0.9, ls=DASHES[rule], alpha=0.7, label=label)
    legend_below(figure, [left_axis, right_axis])
    return figure
