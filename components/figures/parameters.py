"""Which parameters of a sample are drawn, under which names."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.metrics import diagnostics
from components.posteriors.draws import Draws

MOST = 12  # parameters in one figure


def parameters(problem: Any, draws: Draws, most: int = MOST) -> list[tuple[str, int, Tensor]]:
    """(name, column, values [C, N] on the CPU) of ``most`` parameters; none where they have no names.

    Where there are more, those that mix worst (smallest bulk ESS) are the ones to look at; they keep their order."""
    names = draws.names or getattr(problem, "names", [])
    if not names or draws.n_draws == 0:
        return []
    values = draws.values.detach().double().cpu()  # [C, N, P']
    columns = list(range(len(names)))
    if len(names) > most and draws.n_draws >= diagnostics.FEWEST_DRAWS:
        ess = diagnostics.bulk_ess(values).nan_to_num(0.0)  # a coordinate that never moves has none
        columns = sorted(ess.argsort()[:most].tolist())
    return [(names[j], j, values[:, :, j]) for j in columns[:most]]


def part(problem: Any, draws: Draws, shown: int) -> str:
    """``12 of 50 parameters``, for titles; empty where all are shown."""
    size = len(draws.names or getattr(problem, "names", []))
    return f"{shown} of {size} parameters, those that mix worst" if size > shown else ""
