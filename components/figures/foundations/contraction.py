"""Posterior contraction compared with its theoretical rate."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from components.figures.style import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ContractionResults(Protocol):
    """Radii of R data sets at each of G numbers of labels."""

    @property
    def numbers(self) -> list[int]: ...

    @property
    def radii(self) -> Tensor: ...  # [R, G]

    @property
    def errors(self) -> Tensor: ...  # squared, of the posterior mean [R, G]

    @property
    def spread(self) -> Tensor: ...  # posterior variance [G]

    @property
    def exact(self) -> Tensor: ...  # [G]

    @property
    def exponent(self) -> float: ...

    def slope(self) -> tuple[float, float]: ...

    def slope_between(self) -> list[tuple[float, float]]: ...


def contraction(report: ContractionResults) -> Figure:
    """Left: radius, error of the mean and posterior sd by N, with a line of the theoretical slope;
    right: slopes by N."""
    figure, (left, right) = new_figure(1, 2, width=4.8, height=3.8)
    n = report.numbers
    radii = report.radii
    mean = radii.mean(0)
    error = radii.std(0) if len(radii) > 1 else radii[0] * 0
    left.errorbar(
        n, mean, yerr=2 * error, fmt="o", ms=4, capsize=2, color=PALETTE[0], label="radius, ± 2 sd"
    )
    left.plot(n, report.exact, "-", lw=1, color=PALETTE[0], label="its root mean square, exact")
    left.plot(
        n,
        report.errors.mean(0).sqrt(),
        "--",
        lw=1,
        color=PALETTE[1],
        label="error of the posterior mean",
    )
    left.plot(n, report.spread.sqrt(), "-.", lw=1, color=PALETTE[2], label="posterior sd")
    middle = len(n) // 2
    theory = [float(mean[middle]) * (k / n[middle]) ** report.exponent for k in n]
    left.plot(
        n,
        theory,
        ":",
        lw=2,
        color=PALETTE[6],
        label=f"theory: N^{report.exponent:.3f}".replace("-", "−"),
    )
    left.set(
        xscale="log",
        yscale="log",
        xlabel="N, labels",
        ylabel="distance from the truth",
        title="Contraction",
    )
    left.legend(fontsize=8)

    between = report.slope_between()
    places = [(a * b) ** 0.5 for a, b in pairwise(n)]
    slopes = [s for s, _ in between]
    errors = [2 * e if e == e else 0.0 for _, e in between]
    right.errorbar(
        places,
        slopes,
        yerr=errors,
        fmt="o",
        ms=4,
        capsize=2,
        color=PALETTE[0],
        label="from N to the next, ± 2 SE",
    )
    slope, slope_error = report.slope()
    right.axhline(
        slope,
        color=PALETTE[5],
        lw=1.2,
        label=f"all N: {slope:.3f} ± {slope_error:.3f}".replace("-", "−"),
    )
    right.axhline(
        report.exponent,
        ls=":",
        lw=2,
        color=PALETTE[6],
        label=f"theory: {report.exponent:.3f}".replace("-", "−"),
    )
    right.set(
        xscale="log",
        xlabel="N, labels",
        ylabel="slope of log radius on log N",
        title="Measured and theoretical slope",
    )
    right.legend(fontsize=8)
    # at the numbers themselves: labels of a logarithmic axis overlap within a decade
    for axis in (left, right):
        axis.set_xticks(n, [f"{k:,}" for k in n])
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return figure
