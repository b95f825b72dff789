"""Performance profiles: the share of problems solved by each method within a factor of the smallest
cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from components.figures.style import Figure, legend_below, new_figure, series_style

MOST_NAMED = 10  # maximum lines with a colour and a name; the others are grey
POINTS = 200
LARGEST = 1000.0  # factor at the right end


def performance_profile_figure(
    profiles: Mapping[str, Mapping[str, Sequence[float]]], named: Sequence[str]
) -> Figure:
    """A panel for each tolerance.

    Args:
        profiles: title -> method -> performance ratios of the problems, infinite for unsolved
        problems.
        named: methods with a colour and a name, at most ten.

    Returns:
        The figure.

    Source: Dolan & Moré (2002).
    """
    figure, axes = new_figure(1, len(profiles), width=3.4, height=3.0, sharey=True)
    factors = np.geomspace(1.0, LARGEST, POINTS)
    colours = {method: series_style(k) for k, method in enumerate(named[:MOST_NAMED])}
    for axis, (title, ratios) in zip(axes, profiles.items(), strict=True):
        for method, values in sorted(ratios.items(), key=lambda item: item[0] in colours):
            shares = (np.asarray(values)[:, None] <= factors).mean(0)
            style = colours.get(method)
            if style is None:
                axis.step(factors, shares, where="post", color="0.85", lw=0.8)
            else:
                axis.step(factors, shares, where="post", label=method, lw=1.8, **style)
        axis.set(xscale="log", xlabel="factor τ of the smallest cost", ylim=(0.0, 1.02))
        axis.set_title(title, loc="left")
    axes[0].set_ylabel("share of problems solved")
    legend_below(figure, axes[:1])
    return figure
