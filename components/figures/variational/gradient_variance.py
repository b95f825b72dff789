"""Variance of gradient estimators against learning and training, and their cost."""

from __future__ import annotations

from typing import Any

from components.figures.style import (
    Axes,
    Figures,
    colour_of,
    legend_above,
    legend_below,
    new_figure,
    panel_grid,
    series_marker,
    series_style,
)

FEW = 6.0  # span of an axis up to which every tick is labelled
MANY = 1000.0  # span above which only powers of ten are labelled
COLUMNS = 3  # panels in a row
FLOOR = 1e-6  # smallest plotted ratio


def _look(k: int) -> dict[str, Any]:
    """Plot style of the k-th gradient."""
    return series_style(k) | {"marker": series_marker(k)}


def _plain(ax: Axes) -> None:
    """Logarithmic ticks as plain numbers, between decades only if there are few decades."""
    from matplotlib.ticker import LogLocator

    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_formatter("{x:g}")
            if high < MANY * low:
                few = high < FEW * low
                axis.set_minor_locator(LogLocator(subs=range(2, 10) if few else (2, 5)))
                axis.set_minor_formatter("{x:g}")
            else:
                axis.set_minor_formatter("")
            axis.set_tick_params(which="minor", labelsize=7)


def _plot_learning(
    ax: Axes,
    labels: list[str],
    iterations: list[int],
    scores: dict[str, float],
    curves: dict[str, float],
    t: int,
) -> None:
    for k, label in enumerate(labels):
        y = [curves[f"{label}/{t}/{n}"] for n in iterations]
        ax.plot(iterations, [max(v, FLOOR) for v in y], ms=5, **_look(k), label=label)
    for name, value in scores.items():
        if name.startswith("best_") and name.endswith(f"/{t}"):
            kind, order, _ = name.split("/")
            ax.axhline(
                max(value, FLOOR), color="0.5", lw=0.8, ls=":" if "per_row" in kind else "--"
            )
            ax.annotate(
                f"best {kind.removeprefix('best_').replace('_', ' ')}, {order}",
                (0.01, max(value, FLOOR)),
                xycoords=("axes fraction", "data"),
                fontsize=7,
                va="bottom",
            )
    ax.set(xscale="log", yscale="log", xlabel="iterations of learning", title=f"after {t:,} steps")
    _plain(ax)


def _costs(ax: Axes, labels: list[str], scores: dict[str, float], t: int) -> None:
    for k, label in enumerate(labels):
        ratio, time = (scores[f"{score}/{label}/{t}"] for score in ("trace_ratio", "milliseconds"))
        ax.plot(time, max(ratio, FLOOR), **_look(k), label=label)
    first = labels[0]
    slow = max(scores[f"milliseconds/{label}/{t}"] for label in labels)
    start = scores[f"milliseconds/{first}/{t}"]
    x = [start * (slow / start) ** (i / 20) for i in range(21)] if slow > start > 0 else [start]
    ax.plot(x, [start / v for v in x], color="0.6", lw=0.8)  # same variance × time as the first
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="milliseconds per estimate",
        title=f"cost after {t:,} steps",
    )
    _plain(ax)


def gradient_variance(
    labels: list[str],
    at: list[int],
    iterations: list[int],
    scores: dict[str, float],
    curves: dict[str, float],
) -> Figures:
    """Trace ratios by learning iteration and by training step, and ratio against time at the last
    freeze, where the line joins points with the variance × time of the first gradient.  Nothing is
    drawn before the first freeze.

    ``scores`` and ``curves`` are fields of ``laboratory.measured.Findings``.
    """
    reached = [t for t in at if f"trace_ratio/{labels[0]}/{t}" in scores]
    if not reached:
        return {}
    panels = reached if len(iterations) > 1 else []
    figure, axes, _ = panel_grid(len(panels) + 2, COLUMNS, width=3.2, height=2.8)
    for ax, t in zip(axes, panels, strict=False):
        _plot_learning(ax, labels, iterations, scores, curves, t)
    steps, costs = axes[-2:]
    for k, label in enumerate(labels):
        y = [max(scores[f"trace_ratio/{label}/{t}"], FLOOR) for t in reached]
        steps.plot(range(len(reached)), y, ms=5, **_look(k), label=label)
    steps.set(yscale="log", xlabel="steps of training", title="when learnt")
    _plain(steps)
    steps.set_xticks(range(len(reached)), [f"{t:,}" for t in reached])
    _costs(costs, labels, scores, reached[-1])
    axes[0].set_ylabel("trace of covariance, ratio")
    legend_below(figure, [steps])
    return {"gradient_variance": figure}


def correction_spread(corrections: dict[str, list[float]]) -> Figures:
    """Distribution function of |δ_i^CV/E[a_VarGrad]| over parameters and rows.

    There is a curve for each freeze (Boustati 2021, Figure 5.2 as a distribution function).
    Nothing is drawn if the correction was not measured.
    """
    if not corrections:
        return {}
    figure, (ax,) = new_figure()
    for k, (t, quantiles) in enumerate(corrections.items()):
        share = [i / (len(quantiles) - 1) for i in range(len(quantiles))]
        ax.plot(
            [max(q, FLOOR) for q in quantiles],
            share,
            color=colour_of(k),
            label=f"after {int(t):,} steps",
        )
    ax.set(xscale="log", xlabel="|δ / E a|", ylabel="share of parameters below")
    legend_above(ax)
    return {"corrections": figure}
