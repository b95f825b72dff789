"""Fisher's report: the projection of the confidence ellipsoid on two coefficients, and its
simulated coverage."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.figures.style import BLACK, BLUE, GREY, RED, Axes, Figure, legend_below, new_figure
from components.maths.least_squares import LinearData


def closest_pair(covariance: Tensor) -> tuple[int, int]:
    """The two coefficients with the most correlated estimates.

    Unlike two intervals, an ellipse shows this correlation.
    """
    scale = covariance.diagonal().sqrt()
    correlation = (covariance / scale / scale[:, None]).abs().fill_diagonal_(0).triu()
    i, j = divmod(int(correlation.argmax()), len(correlation))
    return i, j


def shadow(centre: Tensor, covariance: Tensor, radius: float, i: int, j: int) -> Tensor:
    """Edge of the projection of {β : (β − c)ᵀC⁻¹(β − c) ≤ radius} on coordinates i and j, [200,
    2]."""
    angle = torch.linspace(0, 2 * math.pi, 200, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], 1) * radius**0.5
    part = covariance.detach().cpu().double()[[i, j]][:, [i, j]]
    return centre.detach().cpu().double()[[i, j]] + circle @ torch.linalg.cholesky(part).T


def finish_plane(
    figure: Figure, axis: Axes, data: LinearData, pair: tuple[int, int], title: str
) -> None:
    """Add the true coefficients i and j, if known, labels, and a legend below the figure."""
    i, j = pair
    if data.is_simulated:
        axis.plot(
            *data.beta[[i, j]].tolist(),
            "X",
            color=RED,
            markersize=9,
            label="true β",
        )
    axis.set(xlabel=f"β of {data.names[i]}", ylabel=f"β of {data.names[j]}", title=title)
    legend_below(figure, [axis])


def confidence_region(
    data: LinearData,
    level: float,
    estimates: Tensor,
    coverage: dict[float, tuple[float, float]],
    n: int,
) -> Figure:
    """Left: β̂ with its region and the estimates of repeated data sets.  Right: coverage minus
    level, ± 2 standard errors.

    Args:
        data: the regression with D coefficients.
        level: level of the region.
        estimates: estimates of some of the repeated data sets [·, D].
        coverage: level -> share of regions that contain β, and its standard error.
        n: number of repeated data sets.
    """
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.8, height=3.8)
    fit = data.fit
    i, j = closest_pair(fit.covariance)
    edge = shadow(fit.beta, fit.noise * fit.covariance, fit.radius(level), i, j)
    cloud = estimates.cpu()
    repeated = (
        "estimates, data repeated" if data.is_simulated else "estimates, data repeated from β̂"
    )
    left_axis.plot(*cloud[:, [i, j]].T, ".", color=GREY, markersize=3, alpha=0.6, label=repeated)
    left_axis.plot(*edge.T, color=BLUE, label=f"{100 * level:.0f} % confidence region")
    left_axis.plot(*fit.beta[[i, j]].tolist(), "o", color=BLUE, label="maximum likelihood")
    finish_plane(figure, left_axis, data, (i, j), "Fisher: estimate and ellipsoid")

    levels = sorted(coverage)
    excess = [100 * (coverage[v][0] - v) for v in levels]
    right_axis.axhline(0, color=BLACK, linewidth=0.8)
    errors = [200 * coverage[v][1] for v in levels]
    right_axis.errorbar(
        [100 * v for v in levels], excess, yerr=errors, fmt="o", color=BLUE, capsize=3
    )
    right_axis.set(
        xlabel="level of the region, %",
        ylabel="coverage − level, percentage points",
        title=f"Coverage on {n:,} repeated data sets",
    )
    return figure
