"""Which parameters of a sample are drawn, under which names."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.draws import Draws

MOST = 12  # parameters in one figure


def parameters(problem: Any, draws: Draws, most: int = MOST) -> list[tuple[str, int, Tensor]]:
    """(name, column, values [C, N] on the CPU) of the first ``most`` parameters; none where they have no names."""
    names = draws.names or getattr(problem, "names", [])
    if not names or draws.n_draws == 0:
        return []
    values = draws.values.detach().double().cpu()  # [C, N, P']
    return [(name, j, values[:, :, j]) for j, name in enumerate(names[:most])]


def part(problem: Any, draws: Draws, shown: int) -> str:
    """``12 of 50 parameters``, for titles; empty where all are shown."""
    size = len(draws.names or getattr(problem, "names", []))
    return f"{shown} of {size} parameters" if size > shown else ""
