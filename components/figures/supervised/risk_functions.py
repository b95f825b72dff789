"""Wald's report: risk functions of estimators along a ray, their worst case and their integral over
the prior."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.figures.style import GREY, PALETTE, Figure, legend_below, new_figure

LABELS = {
    "least_squares": "least squares",
    "james_stein": "James–Stein",
    "james_stein_plus": "James–Stein, stopped at 0",
    "ridge_hkb": "ridge, data-dependent λ",
    "bayes": "Bayes rule",
}


def risk_functions(
    multiples: list[float],
    risk: tuple[Tensor, Tensor],
    bayes_risk: tuple[Tensor, Tensor],
    loss: str,
    is_simulated: bool,
) -> Figure:
    """Left: risk ± 2 standard errors against the length of β.  Right: worst and integrated risk of
    each estimator.

    Args:
        multiples: M multiples of the coefficients β₀.
        risk: risks of E estimators and their standard errors [E, M].
        bayes_risk: integrated risks and their standard errors [E].
        loss: name of the loss.
        is_simulated: True if β₀ is the truth.
    """
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.8, height=3.8)
    names = list(LABELS)
    for e, name in enumerate(names):
        style: dict[str, Any] = {
            "fmt": ".-",
            "capsize": 2,
            "linewidth": 1.4,
            "color": PALETTE[e],
            "label": LABELS[name],
        }
        left_axis.errorbar(multiples, risk[0][e], yerr=2 * risk[1][e], **style)
    whose = "the true coefficients" if is_simulated else "the estimated coefficients"
    error_norm = "‖β − β̃‖" if loss == "estimation" else "‖X(β − β̃)‖"
    left_axis.set(
        xlabel=f"r in β = r β₀, β₀ {whose}",
        ylabel=f"risk for {error_norm}",
        title="Wald: risk functions",
    )
    left_axis.set_ylim(bottom=0)
    legend_below(figure, [left_axis])

    place = range(len(names))
    worst = risk[0].amax(1)
    right_axis.barh(
        [p - 0.2 for p in place], worst, height=0.38, color=GREY, label="worst along the ray"
    )
    right_axis.barh(
        [p + 0.2 for p in place],
        bayes_risk[0],
        xerr=2 * bayes_risk[1],
        height=0.38,
        color=[PALETTE[e] for e in place],
        label="integrated over the prior",
    )
    right_axis.set_yticks(list(place), [LABELS[name] for name in names])
    right_axis.invert_yaxis()
    right_axis.set(xlabel="risk", title="Worst (grey) and integrated risk")
    return figure
