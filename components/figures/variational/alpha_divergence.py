"""Gaussians that minimise α-divergences, with the target density."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from components.figures.style import BLUE, RED, Figure, legend_below, new_figure
from components.maths.divergences.alpha_divergence import NearestGaussian

LEAST = 1e-3  # fraction of the largest value below which p and q are not shown


def name_alpha(alpha: float) -> str:
    """Name of α in a title: −∞, 0.5, ∞."""
    text = "∞" if math.isinf(alpha) else f"{abs(alpha):g}"
    return f"−{text}" if alpha < 0 else text


def nearest_gaussians(x: Tensor, p: Tensor, fits: Sequence[NearestGaussian]) -> Figure:
    """One panel for each α: p in blue and the unnormalised Gaussian Z N(m, s²) in red, at x [G]."""
    curves = [
        fit.mass
        * (-0.5 * ((x - fit.mean) / fit.sd).square()).exp()
        / (fit.sd * math.sqrt(2 * math.pi))
        for fit in fits
    ]
    visible = x[(p > LEAST * p.max()) | sum(curve > LEAST * curve.max() for curve in curves).bool()]  # type: ignore[union-attr]
    figure, axes = new_figure(1, len(fits), width=2.4, height=2.6, sharex=True, sharey=True)
    for axis, fit, curve in zip(axes, fits, curves, strict=True):
        axis.plot(x, p, color=BLUE, lw=1.5, label="p")
        axis.plot(x, curve, color=RED, lw=1.5, label="q, free mass")
        axis.set_title(f"α = {name_alpha(fit.alpha)}")
        axis.set(xlim=(float(visible[0]), float(visible[-1])), xlabel="θ")
    axes[0].set(ylabel="density", ylim=(0, None))
    legend_below(figure, axes)
    return figure


def sizes_by_alpha(fits: Sequence[NearestGaussian]) -> Figure:
    """Mass, mean and standard deviation of the nearest Gaussian by α; at α = 1 they equal the
    moments of p."""
    figure, axes = new_figure(1, 3, width=3.2, height=2.6)
    alphas = [fit.alpha for fit in fits]
    at_one = next((fit for fit in fits if fit.alpha == 1), None)
    for axis, name in zip(axes, ("mass", "mean", "sd"), strict=True):
        axis.plot(alphas, [getattr(fit, name) for fit in fits], color=RED, lw=1.5)
        if at_one is not None:
            axis.axhline(getattr(at_one, name), color=BLUE, ls=":", lw=1.5)
        axis.set(xlabel="α", title=f"{name} of q (dotted: of p)")
    return figure
