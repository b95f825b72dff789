"""The objective of every start by cycle."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from components.figures.style import BLUE, GREY, Figures, new_figure


def bound_by_start(by_cycle: Tensor, title: str) -> Figures:
    """Objectives [T, S] of every start by cycle, and the remaining gain on a logarithmic axis.

    The best start has the first colour; the remaining gain is in the right panel.
    """
    if len(by_cycle) < 2:
        return {}

    best = int(by_cycle[-1].argmax())
    figure, (left_axis, right_axis) = new_figure(1, 2)
    cycles = range(1, len(by_cycle) + 1)
    gap = by_cycle[-1, best] - by_cycle
    gap = torch.where(gap > 0, gap, torch.nan)  # not drawn, because the logarithm is undefined
    for s in sorted(range(by_cycle.shape[1]), key=lambda s: s == best):
        look: dict[str, Any] = {
            "color": BLUE if s == best else GREY,
            "lw": 1.8 if s == best else 1.0,
        }
        left_axis.plot(cycles, by_cycle[:, s].numpy(), **look)
        right_axis.semilogy(cycles, gap[:, s].numpy(), **look)
    for axis in (left_axis, right_axis):
        axis.set_xlabel("cycle")
        axis.locator_params(axis="x", integer=True)
    left_axis.set_ylabel(f"{title} (nats)")
    right_axis.set_ylabel("nats below the best final value")
    tail = by_cycle[min(1, len(by_cycle) - 1) :]
    left_axis.set_ylim(
        float(tail.min()) - 1,
        float(by_cycle.max()) + 0.05 * float(by_cycle.max() - tail.min()) + 1,
    )
    figure.suptitle(f"{title} of {by_cycle.shape[1]} starts (coloured: the best)", fontsize=10)
    return {"bound_by_start": figure}
