"""Selection and names of the plotted parameters of a sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.metrics import diagnostics

MOST = 12  # parameters in one figure


class Target(Protocol):
    """A density with named parameters, and moments if known."""

    @property
    def names(self) -> list[str]: ...

    @property
    def mean(self) -> Tensor | None: ...  # [P']; None if not known

    @property
    def second_moment(self) -> Tensor | None: ...  # [P']; None if not known

    @property
    def dim(self) -> int: ...  # P

    @property
    def box(self) -> list[tuple[float, float]]: ...  # range of each parameter

    @property
    def log_density(self) -> Callable[[Tensor], Tensor]: ...  # θ [K, P] -> log π(θ) [K]


def density_plane(
    box: list[tuple[float, float]], log_density: Callable[[Tensor], Tensor], like: Tensor, n: int
) -> tuple[Tensor, Tensor, Tensor]:
    """n points along each side of a box of two parameters, and log π at the grid [n, n], with rows
    for the second parameter; on the CPU."""
    sides = [
        torch.linspace(low, high, n, device=like.device, dtype=like.dtype) for low, high in box
    ]
    values = log_density(torch.cartesian_prod(*sides)).reshape(n, n).T
    x, y = (side.cpu() for side in sides)
    return x, y, values.cpu()


def parameter_names(problem: Target | None, draws: HoldsDraws) -> list[str]:
    """Names of the parameters; empty if neither the draws nor the problem have names."""
    return draws.names or (problem.names if problem is not None else [])


def parameters(
    problem: Target | None, draws: HoldsDraws, most: int = MOST
) -> list[tuple[str, int, Tensor]]:
    """(name, column, values [C, N] on the CPU) of at most ``most`` parameters; empty for unnamed
    parameters.

    If there are more, those that mix worst (smallest bulk ESS) are selected, in their original
    order."""
    names = parameter_names(problem, draws)
    if not names or draws.n_draws == 0:
        return []
    values = draws.values.detach().double().cpu()  # [C, N, P']
    columns = list(range(len(names)))
    if len(names) > most and draws.n_draws >= diagnostics.FEWEST_DRAWS:
        ess = diagnostics.bulk_ess(values).nan_to_num(0.0)  # NaN for a coordinate that never moves
        columns = sorted(ess.argsort()[:most].tolist())
    return [(names[j], j, values[:, :, j]) for j in columns[:most]]


def part(problem: Target | None, draws: HoldsDraws, shown: int) -> str:
    """``12 of 50 parameters``, for titles; empty if the figure has all parameters."""
    size = len(parameter_names(problem, draws))
    return f"{shown} of {size} parameters, those that mix worst" if size > shown else ""
