"""An approximation of two parameters beside their exact posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.posteriors import KnowsDensity
from components.contracts.problems import Rows, Unnamed
from components.contracts.streams import Rng
from components.figures.style import PALETTE, new_figure
from components.posteriors.draws import Draws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = 160
REACH = 5.0  # standard deviations, of the exact posterior, that the grid goes out to
MASSES = (0.95, 0.75, 0.5, 0.25)  # inside the contours


def levels(log_density: Tensor) -> list[float]:
    """Values of log p, evaluated on a regular grid, whose contours hold 95, 75, 50 and 25 % of the mass, rising."""
    ordered = log_density.flatten().sort(descending=True).values
    mass = ordered.softmax(0).cumsum(0)
    return [float(ordered[int((mass < share).sum())]) for share in MASSES]


def beside_exact(problem: Unnamed, posterior: object, rng: Rng) -> dict[str, Figure]:
    """Contours that hold 95, 75, 50 and 25 % of the exact posterior of θ, by its log joint on a grid, and of q; draws where
    the density of q is not known.  Where there are not two coordinates, or no draws, nothing."""
    if not isinstance(posterior, Draws) or not isinstance(posterior.model, LogJoint) or posterior.draws.shape[-1] != 2:
        return {}
    if posterior.n_draws < 2 or not isinstance(problem.train, Rows):
        return {}
    model, theta = posterior.model, posterior.flat
    centre, reach = theta.mean(0), theta.std(0) * REACH
    sides = [
        torch.linspace(float(c - r), float(c + r), GRID, dtype=theta.dtype) for c, r in zip(centre, reach, strict=True)
    ]
    points = torch.cartesian_prod(*sides).to(theta)
    with torch.no_grad():
        exact = model.log_prior(points) + model.log_likelihood(points, problem.train).sum(1)
        own = posterior.log_density(points) if isinstance(posterior, KnowsDensity) else None
    figure, (axis,) = new_figure(width=5.0, height=4.2)
    shaped = exact.view(GRID, GRID).T.cpu()
    axis.contour(sides[0], sides[1], shaped, levels=levels(exact), colors=PALETTE[6], linewidths=1.0)
    axis.plot([], [], color=PALETTE[6], label="exact posterior")
    if own is not None:
        axis.contour(sides[0], sides[1], own.view(GRID, GRID).T.cpu(), levels=levels(own), colors=PALETTE[1],
                     linewidths=1.4)  # fmt: skip
        axis.plot([], [], color=PALETTE[1], label="q")
    else:
        dots = theta[:: max(1, len(theta) // 1000)].cpu()
        axis.scatter(dots[:, 0], dots[:, 1], s=4, color=PALETTE[0], alpha=0.4, linewidth=0, label="draws")
    axis.set_xlabel("θ1")
    axis.set_ylabel("θ2")
    axis.set_title("25, 50, 75 and 95 % of the mass", fontsize=10)
    axis.legend(fontsize=8)
    return {"beside_exact": figure}
