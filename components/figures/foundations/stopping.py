"""Effect of stopping rules on intervals and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from components.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    RED,
    SKY,
    Figure,
    legend_above,
    new_figure,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


LABELS = {
    "fixed": "fixed n",
    "until_significant": "until p < α",
    "until_short": "until the interval is short",
    "negative_binomial": "until the last tail",
}
LOOKS = [
    ("credible", 0, BLUE, "credible, over the prior"),
    ("credible", 1, SKY, "credible, at θ₀"),
    ("confidence", 0, ORANGE, "confidence, over the prior"),
    ("confidence", 1, RED, "confidence, at θ₀"),
]


class ObservedTosses(NamedTuple):
    """The observed tosses, with their posterior and p-values."""

    heads: int
    tails: int
    null: float
    beta: tuple[float, float]  # of the posterior
    p_values: dict[str, float]
    posterior_null: float


class Coverage(NamedTuple):
    """Coverage of intervals: the share that contain θ, its standard error, and the exact share.

    Entries are for the prior, θ₀, …
    """

    share: Any
    error: Any
    exact: list[float]


def stopping(
    coverages: Mapping[str, Mapping[Any, Coverage]],
    error_by_n_max: tuple[Any, Any],
    level: float,
    alpha: float,
    tosses: ObservedTosses,
) -> Figure:
    """Coverage ± 2 standard errors by rule, with exact values as bars; error rate of the test by N;
    one posterior with two p-values.

    Args:
        coverages: kind of interval -> rule -> coverage.
        error_by_n_max: by N, simulated and exact.
        level: level of the intervals.
        alpha: level of the test.
        tosses: the observed tosses.
    """
    from scipy import stats

    figure, (left_axis, middle_axis, right_axis) = new_figure(1, 3, width=4.6, height=3.7)
    for c, (kind, place, colour, label) in enumerate(LOOKS):
        by_rule = coverages[kind].values()
        positions = np.arange(len(by_rule)) + 0.17 * (c - 1.5)
        share = np.array([coverage.share[place] for coverage in by_rule])
        error = np.array([coverage.error[place] for coverage in by_rule])
        left_axis.errorbar(
            positions, share, yerr=2 * error, fmt="o", ms=4, capsize=2, color=colour, label=label
        )
        left_axis.plot(
            positions,
            [coverage.exact[place] for coverage in by_rule],
            "_",
            ms=14,
            color=colour,
        )
    left_axis.axhline(level, ls="--", lw=1, color=GREY)
    left_axis.set_xticks(
        range(len(coverages["credible"])),
        [LABELS[rule].replace("until ", "until\n", 1) for rule in coverages["credible"]],
        fontsize=8,
    )
    left_axis.set(
        ylabel="share of intervals that contain θ",
        title=f"Coverage of {100 * level:.0f} % intervals (bars: exact)",
    )
    legend_above(left_axis)

    simulated, exact = error_by_n_max
    n = np.arange(1, len(exact))
    middle_axis.plot(n, exact[1:], color=BLACK, lw=1.2, label="exact")
    marks = np.unique(np.geomspace(1, len(exact) - 1, 25).astype(int))
    middle_axis.plot(marks, simulated[marks], "o", ms=4, color=RED, label="simulated")
    middle_axis.axhline(alpha, ls="--", lw=1, color=GREY, label="α")
    middle_axis.set(
        xscale="log",
        xlabel="N, maximum number of tosses",
        ylabel="P(p < α at some n ≤ N | θ₀)",
        title="Tossing until p < α",
    )
    middle_axis.set_ylim(bottom=0)
    legend_above(middle_axis)

    (a, b), theta = tosses.beta, np.linspace(0, 1, 400)
    density = stats.beta.pdf(theta, a, b)
    right_axis.plot(theta, density, color=BLUE)
    below = theta <= tosses.null
    right_axis.fill_between(theta[below], density[below], color=BLUE, alpha=0.3)
    p = tosses.p_values
    words = [
        f"P(θ ≤ {tosses.null:g} | y) = {tosses.posterior_null:.4f}",
        f"p, {tosses.heads + tosses.tails} tosses fixed: {p['binomial']:.4f}",
        f"p, {tosses.tails} tails fixed: {p['negative_binomial']:.4f}",
    ]
    right_axis.text(
        0.03, 0.97, "\n".join(words), transform=right_axis.transAxes, va="top", fontsize=9
    )
    right_axis.set(
        xlabel="θ",
        ylabel="posterior density",
        title=f"{tosses.heads} heads, {tosses.tails} tails: one posterior, two p-values",
    )
    right_axis.set_ylim(0, 1.45 * float(density[np.isfinite(density)].max()))
    return figure
