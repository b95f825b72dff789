"""An approximation for two parameters, compared with the exact posterior or density."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.posteriors import DensityPosterior, HoldsDraws
from components.contracts.problems import Rows, UnlabelledProblem
from components.contracts.streams import Rng
from components.figures.samples.parameters import Target
from components.figures.style import BLACK, BLUE, RED, Figures, legend_above, new_figure, scatter
from components.posteriors.draws import Draws

GRID = 200
INITIAL_GRID_REACH = 5.0
WIDER = 1.5
WIDEST = 60.0  # initial and maximum extent of the grid, in standard deviations of q
EDGE = 8.0  # required decrease of the exact log density at the edge, in nats
MASSES = (0.95, 0.75, 0.5, 0.25)  # shares of mass inside the contours
Density = Callable[[Tensor], Tensor]  # log density, known up to a constant, [n, 2] -> [n]


def levels(log_density: Tensor) -> list[float]:
    """Values of log p at contours that contain given shares of the mass on a regular grid.

    They contain 95, 75, 50 and 25 % of the mass, in order of increasing values.
    """
    ordered = log_density.flatten().sort(descending=True).values
    mass = ordered.softmax(0).cumsum(0)
    return [float(ordered[min(int((mass < share).sum()), len(ordered) - 1)]) for share in MASSES]


def spread(log_density: Tensor, points: Tensor) -> Tensor:
    """Standard deviations of both coordinates from the grid [2]."""
    mass = log_density.flatten().softmax(0)[:, None]
    mean = (mass * points).sum(0)
    return (mass * (points - mean).square()).sum(0).sqrt()


@torch.no_grad()
def plane(theta: Tensor, exact: Density) -> tuple[list[Tensor], Tensor]:
    """Two sides and the points of a grid around draws of q, wide enough for the exact density to be
    nearly 0 at its edge."""
    reach = INITIAL_GRID_REACH
    while True:
        half = theta.std(0) * reach
        ranges = zip((theta.mean(0) - half).tolist(), (theta.mean(0) + half).tolist(), strict=True)
        sides = [torch.linspace(low, high, GRID, dtype=theta.dtype) for low, high in ranges]
        points = torch.cartesian_prod(*sides).to(theta)
        value = exact(points).view(GRID, GRID)
        edge = torch.cat([value[0], value[-1], value[:, 0], value[:, -1]]).max()
        if edge < value.max() - EDGE or reach > WIDEST:
            return sides, points
        reach *= WIDER


def contours(theta: Tensor, exact: Density, own: Density | None, called: str) -> Figures:
    """Contours of both densities over the extent of draws θ [n, 2] of q; the draws if the density
    of q is not known."""
    sides, points = plane(theta, exact)
    figure, (axis,) = new_figure(width=5.0, height=4.4)
    captions = []
    inside = torch.zeros(len(points), dtype=torch.bool)
    curves = [
        (exact, BLACK, 1.0, called),
        *([(own, RED, 1.5, "q")] if own is not None else []),
    ]
    for density, colour, width, name in curves:
        with torch.no_grad():
            value = density(points).cpu()
        surface = value.view(GRID, GRID).T
        axis.contour(
            *sides,
            surface,
            levels=levels(value),
            colors=colour,
            linewidths=width,
            linestyles="solid",
        )
        inside |= value > levels(value)[0]
        axis.plot(torch.nan, torch.nan, color=colour, label=name)  # contours have no legend entry
        captions.append(
            f"{name} {', '.join(f'{float(v):.3g}' for v in spread(value, points.cpu()))}"
        )
    if own is None:
        dots = theta[:: max(1, len(theta) // 1000)].cpu()
        scatter(axis, dots, s=4, color=BLUE, alpha=0.4, linewidth=0, label="draws")
    low = points.cpu()[inside].amin(0)
    high = points.cpu()[inside].amax(0)
    margin = 0.15 * (high - low)
    left, bottom = (low - margin).tolist()
    right, top = (high + margin).tolist()
    axis.set(xlim=(left, right), ylim=(bottom, top), xlabel="θ1", ylabel="θ2")
    axis.set_title(f"25, 50, 75 and 95 % of the mass\nsd: {'; '.join(captions)}", fontsize=9)
    legend_above(axis)
    return {"beside_exact": figure}


def get_log_density(posterior: object, theta: Tensor) -> Density | None:
    """log q if it is known, as a function of numbers like the draws θ."""
    if not isinstance(posterior, DensityPosterior):
        return None
    is_known = posterior.log_density(theta.new_zeros(1, 2)) is not None
    return cast(Density, posterior.log_density) if is_known else None


def beside_exact(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """Contours that contain 95, 75, 50 and 25 % of the exact posterior of θ, from its log joint on
    a grid, and of q.  Nothing is drawn unless there are two coordinates and draws."""
    train = problem.train
    if not isinstance(posterior, Draws) or not isinstance(train, Rows):
        return {}
    model = posterior.model
    if not isinstance(model, LogJoint) or posterior.draws.shape[-1] != 2 or posterior.n_draws < 2:
        return {}

    def exact(theta: Tensor) -> Tensor:
        return model.log_prior(theta) + model.log_likelihood(theta, train).sum(1)

    return contours(
        posterior.flat, exact, get_log_density(posterior, posterior.flat), "exact posterior"
    )


def target_contours(problem: Target, draws: HoldsDraws) -> Figures:
    """Contours of a density of two coordinates and of q, if the density of q is known.

    Nothing is drawn for a q with only draws.
    """
    q_density = get_log_density(draws, draws.draws) if draws.draws.shape[-1] == 2 else None
    return (
        {}
        if q_density is None or draws.n_draws < 2
        else contours(draws.flat, problem.log_density, q_density, "target")
    )
