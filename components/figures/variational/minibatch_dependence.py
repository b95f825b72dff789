"""Dependence of a gradient, as a function of its noise, on the minibatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from components.figures.style import PALETTE, Figures, legend_above, new_figure

if TYPE_CHECKING:
    Array = np.ndarray


class BatchSlopes(NamedTuple):
    """Linear control variates c ε of gradients g_B(ε) at several minibatches."""

    by_batch: Array  # c_B = Cov(g_B, ε)/Var ε [B]
    shared: float  # c̄, which minimises the sum of variances


def linear_coefficients(noise: Array, gradient: Array) -> BatchSlopes:
    """c_B of each minibatch and c̄ = Σ_B Cov(g_B, ε)/Σ_B Var ε; noise, gradient [B, S]."""
    off = noise - noise.mean(1, keepdims=True)
    cross = (off * gradient).sum(1)
    square = (off**2).sum(1)
    return BatchSlopes(cross / square, float(cross.sum() / square.sum()))


def minibatch_dependence(findings: dict[str, dict[str, list[list[float]]]]) -> Figures:
    """Boustati (2021), Figure 4.1: left, g_B(ε) of two minibatches, c_B ε and c̄ ε; right, the
    distribution of g_B(ε), of g_B − c̄ ε and of g_B − c_B ε.

    For the last freeze; nothing is drawn if no freeze was illustrated.
    """
    if not findings:
        return {}
    t, finding = list(findings.items())[-1]
    noise = np.array(finding["noise"])
    gradient = np.array(finding["gradient"])
    c = linear_coefficients(noise, gradient)
    share = np.full(noise.shape[1], 1 / noise.shape[1])
    figure, (left_axis, right_axis) = new_figure(1, 2, 3.8, 3.2)
    for b, color in enumerate(PALETTE[: len(noise)]):
        level = gradient[b].mean()
        left_axis.plot(noise[b], gradient[b], color=color, label=f"minibatch {b + 1}")
        left_axis.plot(noise[b], level + c.by_batch[b] * noise[b], "--", color=color, lw=0.9)
        left_axis.plot(noise[b], level + c.shared * noise[b], ":", color="0.5", lw=0.9)
        styles: list[tuple[float, dict[str, Any]]] = [
            (0.0, {"histtype": "step", "color": color}),
            (c.shared, {"histtype": "stepfilled", "color": color, "alpha": 0.25}),
            (c.by_batch[b], {"histtype": "stepfilled", "color": color, "alpha": 0.8}),
        ]
        for coefficient, look in styles:
            right_axis.hist(gradient[b] - coefficient * noise[b], bins=40, weights=share, **look)
    left_axis.set(xlabel="ε", ylabel="component of ĝ/N", title=f"after {int(t):,} steps")
    right_axis.set(
        xlabel="ĝ/N; pale: less c̄ ε; dark: less c_B ε",
        ylabel="share of draws in 1/40 of the range",
    )
    legend_above(left_axis)
    return {"minibatch_dependence": figure}
