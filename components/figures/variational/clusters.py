"""Rows with at least two values by cluster."""

from __future__ import annotations

import math

import torch

from components.contracts.posteriors import PredictsRows
from components.contracts.problems import Rows, UnlabelledProblem
from components.contracts.streams import Rng
from components.figures.style import Figures, colour_of, new_figure, scatter

GRID = 80
MARGIN = 0.05  # margin on either side, as a share of the range of the rows


def clusters(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """Held-out rows in the first two values, by known class and by most probable cluster (paler if
    less certain); for rows of two values also contours of the predictive density, a factor e
    apart."""
    rows = problem.test
    if not isinstance(posterior, PredictsRows) or not isinstance(rows, Rows) or rows.x.shape[1] < 2:
        return {}
    with torch.no_grad():
        assignment = posterior.clusters(rows)
    if assignment is None:
        return {}
    x = rows.x.cpu()
    probabilities = assignment.cpu()
    figure, axes = new_figure(1, 2, width=4.2, height=3.8, sharex=True, sharey=True)
    classes = problem.test_classes
    colours = [
        colour_of(int(k)) for k in (classes if classes is not None else torch.full((len(x),), 7))
    ]
    scatter(axes[0], x[:, :2], s=9, c=colours, linewidth=0)
    kind = "known classes of" if classes is not None else ""
    axes[0].set_title(f"{kind} {len(x):,} held-out rows".strip())
    from matplotlib.colors import to_rgba

    labels = probabilities.argmax(1).tolist()
    certain = probabilities.amax(1).clamp(0.15, 1).tolist()
    paler = [to_rgba(colour_of(k), p) for k, p in zip(labels, certain, strict=True)]
    scatter(axes[1], x[:, :2], s=9, c=paler, linewidth=0)
    axes[1].set_title("their most probable clusters")
    if x.shape[1] == 2:
        low = x.amin(0)
        high = x.amax(0)
        sides = [
            torch.linspace(float(a - m), float(b + m), GRID, dtype=x.dtype)
            for a, b, m in zip(low, high, MARGIN * (high - low), strict=True)
        ]
        points = torch.cartesian_prod(*sides).to(rows.x)
        with torch.no_grad():
            density = posterior.log_predictive(Rows(points, 1.0)).view(GRID, GRID).T.cpu()
        top = math.floor(float(density.max()))
        axes[1].contour(
            sides[0],
            sides[1],
            density,
            levels=[top - k for k in range(6, -1, -1)],
            colors="k",
            linewidths=0.6,
            linestyles="solid",
            alpha=0.6,
        )
    axes[0].set(xlabel="x1", ylabel="x2")
    axes[1].set_xlabel("x1")
    return {"clusters": figure}
