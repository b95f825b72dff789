"""Inclusion probability of each regressor and channel (Gallego Fig 1.5)."""

from __future__ import annotations

from components.contracts.posteriors import Selects
from components.figures.style import BLACK, Figures, new_figure


def inclusion(posterior: Selects) -> Figures:
    """A bar per column with its inclusion probability, the highest on top; white if its coefficient
    is mostly positive, black if mostly negative.  Nothing is drawn if every column is always in."""
    probable = posterior.inclusion
    positive = posterior.positive
    if min(probable.values(), default=1) == 1:
        return {}
    names = sorted(probable, key=lambda name: probable[name])
    figure, (axis,) = new_figure(1, 1, width=5.0, height=0.6 + 0.26 * len(names))
    colours = ["white" if positive[name] >= 0.5 else "black" for name in names]
    axis.barh(
        names,
        [probable[name] for name in names],
        color=colours,
        edgecolor=BLACK,
        lw=0.8,
        height=0.65,
    )
    axis.set(xlim=(0, 1), xlabel="inclusion probability (white: positive, black: negative)")
    return {"inclusion": figure}
