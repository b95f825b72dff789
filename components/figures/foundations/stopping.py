"""Effect of stopping rules on intervals and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from components.figures.style import PALETTE, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

LABELS = {
    "fixed": "fixed n",
    "until_significant": "until p < α",
    "until_short": "until the interval is short",
    "negative_binomial": "until the last tail",
}
LOOKS = [
    ("credible", 0, PALETTE[0], "credible, over the prior"),
    ("credible", 1, PALETTE[5], "credible, at θ₀"),
    ("confidence", 0, PALETTE[4], "confidence, over the prior"),
    ("confidence", 1, PALETTE[1], "confidence, at θ₀"),
]


class Stopping(Protocol):
    """Coverage and errors by rule, simulated and exact, and the tosses at hand."""

    @property
    def heads(self) -> int: ...

    @property
    def tails(self) -> int: ...

    @property
    def null(self) -> float: ...

    @property
    def level(self) -> float: ...

    @property
    def alpha(self) -> float: ...

    @property
    def rules(self) -> Sequence[Any]: ...

    @property
    def beta(self) -> tuple[float, float]: ...  # of the posterior

    @property
    def p_values(self) -> dict[str, float]: ...

    @property
    def posterior_null(self) -> float: ...

    # with standard errors; over the prior, at θ₀, …
    def coverage(self, kind: str, rule: Any) -> tuple[Any, Any]: ...

    def exact_coverage(self, kind: str, rule: Any) -> list[float]: ...

    def error_by_n_max(self) -> tuple[Any, Any]: ...  # by N: simulated, exact


def stopping(report: Stopping) -> Figure:
    """Coverage ± 2 standard errors by rule, with its exact value as a bar; errors of the test by N;
    one posterior, two p."""
    from scipy import special

    figure, (left, middle, right) = new_figure(1, 3, width=4.6, height=3.7)
    for c, (kind, place, colour, label) in enumerate(LOOKS):
        positions = np.arange(len(report.rules)) + 0.17 * (c - 1.5)
        coverages = [report.coverage(kind, rule) for rule in report.rules]
        share, error = (np.array([pair[index][place] for pair in coverages]) for index in (0, 1))
        left.errorbar(
            positions, share, yerr=2 * error, fmt="o", ms=4, capsize=2, color=colour, label=label
        )
        left.plot(
            positions,
            [report.exact_coverage(kind, rule)[place] for rule in report.rules],
            "_",
            ms=14,
            color=colour,
        )
    left.axhline(report.level, ls="--", lw=1, color=PALETTE[7])
    left.set_xticks(
        range(len(report.rules)),
        [LABELS[r].replace("until ", "until\n", 1) for r in report.rules],
        fontsize=8,
    )
    left.set(
        ylabel="share of intervals that hold θ",
        title=f"Coverage of {report.level:.0%} intervals (bars: exact)",
    )
    left.legend(fontsize=8)

    simulated, exact = report.error_by_n_max()
    n = np.arange(1, len(exact))
    middle.plot(n, exact[1:], color=PALETTE[6], lw=1.2, label="exact")
    marks = np.unique(np.geomspace(1, len(exact) - 1, 25).astype(int))
    middle.plot(marks, simulated[marks], "o", ms=4, color=PALETTE[1], label="simulated")
    middle.axhline(report.alpha, ls="--", lw=1, color=PALETTE[7], label="α")
    middle.set(
        xscale="log",
        xlabel="N, the most tosses",
        ylabel="P(p < α at some n ≤ N | θ₀)",
        title="Tossing until p < α",
    )
    middle.set_ylim(bottom=0)
    middle.legend(fontsize=8)

    (a, b), theta = report.beta, np.linspace(0, 1, 400)
    with np.errstate(divide="ignore"):
        log_density = (
            special.xlogy(a - 1, theta) + special.xlog1py(b - 1, -theta) - special.betaln(a, b)
        )
    density = np.exp(log_density)
    right.plot(theta, density, color=PALETTE[0])
    below = theta <= report.null
    right.fill_between(theta[below], density[below], color=PALETTE[0], alpha=0.3)
    p = report.p_values
    words = [
        f"P(θ ≤ {report.null:g} | y) = {report.posterior_null:.4f}",
        f"p, {report.heads + report.tails} tosses fixed: {p['binomial']:.4f}",
        f"p, {report.tails} tails fixed: {p['negative_binomial']:.4f}",
    ]
    right.text(0.03, 0.97, "\n".join(words), transform=right.transAxes, va="top", fontsize=9)
    right.set(
        xlabel="θ",
        ylabel="posterior density",
        title=f"{report.heads} heads, {report.tails} tails: one posterior, two p",
    )
    right.set_ylim(0, 1.45 * float(density[np.isfinite(density)].max()))
    return figure
