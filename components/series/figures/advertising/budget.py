"""Expected result of a budget, its risk, and its spending plan (Gallego section 1.2.4)."""

from __future__ import annotations

import math

import numpy as np

from components.figures.style import BLUE, Figure, colour_of, legend_above, new_figure
from components.series.budget.choices import Choice
from components.series.budget.plan import Plan

MOST_WEEKS = 16  # labels below the bars


def budget_figure(
    along: list[Plan],
    choices: list[Choice],
    channels: list[str],
    weeks: list[str],
    promise: str = "",
) -> Figure:
    """Left: the frontier of expected sales against their standard deviation, and each choice by
    name, hollow if infeasible.  Right: the first choice as stacked bars of channels, week by week,
    with its predicted gain in the title."""
    figure, (left, right) = new_figure(1, 2, width=5.0, height=4.0)
    left.plot(
        [plan.sd for plan in along],
        [plan.mean for plan in along],
        "o-",
        ms=4,
        color=BLUE,
        zorder=3,  # a choice may lie on the frontier
        label="best at its risk",
    )
    for k, choice in enumerate(choices):
        out = choice.verdict.startswith("breaks")
        colour = colour_of(k + 1)
        left.plot(
            choice.sd,
            choice.mean,
            "D",
            ms=6,
            color=colour,
            mfc="none" if out else colour,
            label=f"{choice.name}: {choice.verdict}",
        )
    left.set(xlabel="standard deviation of the sum of sales", ylabel="expected sum of sales")
    legend_above(left, fontsize=7)
    first_choice = choices[0]
    base = np.zeros(len(weeks))
    spends = first_choice.u.reshape(len(weeks), len(channels))
    for i, channel in enumerate(channels):
        right.bar(
            range(len(weeks)),
            spends[:, i],
            bottom=base,
            color=colour_of(i),
            label=channel,
        )
        base = base + spends[:, i]
    title = f"{first_choice.name}\n{promise}" if promise else first_choice.name
    right.set_title(title, fontsize=9)
    right.set(ylabel="spend", ylim=(0, None))
    every = math.ceil(len(weeks) / MOST_WEEKS)
    named = range(0, len(weeks), every)
    right.set_xticks(named, [weeks[k] for k in named], rotation=45, ha="right", fontsize=7)
    legend_above(right, fontsize=7)
    return figure
