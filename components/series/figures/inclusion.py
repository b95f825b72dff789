"""How often each regressor and channel is in (Gallego Fig 1.5)."""

from __future__ import annotations

from components.contracts.posteriors import Selects
from components.figures.style import BLACK, Figures, new_figure


def inclusion(posterior: Selects) -> Figures:
    """A bar for each column, as long as it is probably in, the likeliest on top; white where its
    coefficient is positive more often than not, black where it is negative."""
    probable = posterior.inclusion
    positive = posterior.positive
    if not probable:
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
