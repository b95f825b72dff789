"""Savage's report: credible region, interval of each coefficient, and model probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from components.figures.style import BLACK, BLUE, GREEN, GREY, RED, Figure, new_figure
from components.figures.supervised.confidence_region import closest_pair, finish_plane, shadow
from components.maths.conjugate_regression import Coefficients
from components.maths.least_squares import LinearData

MAX_PLOTTED_DRAWS = 400
MODELS = 8  # number of the most probable models shown


def credible_region(
    data: LinearData,
    beta_posterior: Coefficients,
    noise: float | tuple[float, float],
    draws: Tensor,
    models: list[str],
    probabilities: Tensor,
    *,
    level: float,
    scale: float,
    radius: float,
) -> Figure:
    """Credible region, intervals of each coefficient, and model probabilities.

    Draws appear with the projections of the region and of Fisher's region; intervals are central
    credible and confidence intervals.

    Args:
        data: the regression with D coefficients.
        beta_posterior: the posterior of β.
        noise: σ², or (a, b) of its posterior InvGamma.
        draws: draws of θ, β first [·, P].
        models: names of the M models.
        probabilities: posterior probability of each [M].
        level: level of the region.
        scale: σ², or b/a.
        radius: radius of the region in units of ``scale``.
    """
    from scipy import stats

    figure, (left_axis, middle_axis, right_axis) = new_figure(1, 3, width=4.3, height=3.8)
    fit = data.fit
    i, j = closest_pair(fit.covariance)
    theta = draws[:MAX_PLOTTED_DRAWS].cpu()
    left_axis.plot(
        *theta[:, [i, j]].T,
        ".",
        color=GREY,
        markersize=3,
        alpha=0.6,
        label="posterior draws",
    )
    theirs = shadow(fit.beta, fit.noise * fit.covariance, fit.radius(level), i, j)
    left_axis.plot(*theirs.T, "--", color=BLUE, label=f"{100 * level:.0f} % confidence (Fisher)")
    edge = shadow(beta_posterior.m, scale * beta_posterior.covariance, radius, i, j)
    left_axis.plot(*edge.T, color=GREEN, label=f"{100 * level:.0f} % credible")
    left_axis.plot(
        *beta_posterior.m[[i, j]].tolist(),
        "o",
        color=GREEN,
        label="posterior mean",
    )
    finish_plane(figure, left_axis, data, (i, j), "Savage: posterior of β")

    half = 0.5 + level / 2
    bayes = stats.norm.ppf(half) if isinstance(noise, float) else stats.t.ppf(half, 2 * noise[0])
    fisher = stats.norm.ppf(half) if fit.known_noise is not None else stats.t.ppf(half, fit.spare)
    place = torch.arange(len(data.names), dtype=torch.float64)
    for shift, centre, spread, factor, colour in (
        (-0.15, fit.beta, fit.noise * fit.covariance.diagonal(), fisher, BLUE),
        (
            0.15,
            beta_posterior.m,
            scale * beta_posterior.covariance.diagonal(),
            bayes,
            GREEN,
        ),
    ):
        width = float(factor) * spread.sqrt().cpu()
        middle_axis.errorbar(
            place + shift, centre.cpu(), yerr=width, fmt="o", capsize=2, markersize=4, color=colour
        )
    if data.is_simulated:
        middle_axis.plot(place, data.beta.cpu(), "X", color=RED, markersize=6, linestyle="none")
    middle_axis.axhline(0, color=BLACK, linewidth=0.8)
    crowded = len(data.names) > 6
    middle_axis.set_xticks(place.tolist(), data.names, rotation=45 if crowded else 0, fontsize=8)
    middle_axis.set(ylabel="coefficient", title=f"{100 * level:.0f} % intervals, one at a time")

    p = probabilities.cpu()
    best = p.argsort(descending=True)[:MODELS]
    right_axis.barh(range(len(best)), p[best], color=GREEN)
    right_axis.set_yticks(range(len(best)), [models[m] for m in best.tolist()], fontsize=8)
    right_axis.invert_yaxis()
    right_axis.set(xlabel="posterior probability", title="Choice among models")
    return figure
