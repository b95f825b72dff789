"""Posterior contraction compared with its theoretical rate."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from components.figures.style import BLACK, BLUE, GREEN, RED, SKY, Figure, legend_above, new_figure


def contraction(
    *,
    n: list[int],
    radii: Tensor,
    squared_errors: Tensor,
    variance: Tensor,
    exact: Tensor,
    exponent: float,
    slope: tuple[float, float],
    slope_between: list[tuple[float, float]],
) -> Figure:
    """Left: radius, error of the mean and posterior sd by N, with a line of the theoretical slope.
    Right: slopes by N.

    Args:
        n: the G numbers of labels.
        radii: radii of R data sets [R, G].
        squared_errors: squared errors of the posterior mean [R, G].
        variance: posterior variance [G].
        exact: root of the expected squared radius [G].
        exponent: exponent of N predicted by theory.
        slope: slope over all N, and its standard error.
        slope_between: the same between neighbouring N.
    """
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.8, height=4.2)
    mean = radii.mean(0)
    error = radii.std(0) if len(radii) > 1 else radii[0] * 0
    left_axis.errorbar(
        n, mean, yerr=2 * error, fmt="o", ms=4, capsize=2, color=BLUE, label="radius, ± 2 sd"
    )
    left_axis.plot(n, exact, "-", lw=1, color=BLUE, label="root mean square of the radius, exact")
    left_axis.plot(
        n,
        squared_errors.mean(0).sqrt(),
        "--",
        lw=1,
        color=RED,
        label="error of the posterior mean",
    )
    left_axis.plot(n, variance.sqrt(), "-.", lw=1, color=GREEN, label="posterior sd")
    middle = len(n) // 2
    theory = [float(mean[middle]) * (k / n[middle]) ** exponent for k in n]
    left_axis.plot(
        n,
        theory,
        ":",
        lw=2,
        color=BLACK,
        label=f"theory: $N^{{{exponent:.3f}}}$",
    )
    left_axis.set(
        xscale="log",
        yscale="log",
        xlabel="N, labels",
        ylabel="distance from the truth",
        title="Contraction",
    )
    legend_above(left_axis)

    places = [(a * b) ** 0.5 for a, b in pairwise(n)]
    slopes = [s for s, _ in slope_between]
    errors = [2 * e if e == e else 0.0 for _, e in slope_between]
    right_axis.errorbar(
        places,
        slopes,
        yerr=errors,
        fmt="o",
        ms=4,
        capsize=2,
        color=BLUE,
        label="from N to the next, ± 2 SE",
    )
    mean_slope, slope_error = slope
    right_axis.axhline(
        mean_slope,
        color=SKY,
        lw=1.2,
        label=f"all N: {mean_slope:.3f} ± {slope_error:.3f}".replace("-", "−"),
    )
    right_axis.axhline(
        exponent,
        ls=":",
        lw=2,
        color=BLACK,
        label=f"theory: {exponent:.3f}".replace("-", "−"),
    )
    right_axis.set(
        xscale="log",
        xlabel="N, labels",
        ylabel="slope of log radius on log N",
        title="Measured and theoretical slope",
    )
    legend_above(right_axis)
    # ticks at the values of N: labels of a logarithmic axis overlap within a decade
    for axis in (left_axis, right_axis):
        axis.set_xticks(n, [f"{k:,}" for k in n])
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return figure
