"""Calibration of predicted probabilities for each task."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import (
    Categorical,
    GaussianMixture,
    PoissonMixture,
    is_finite,
)
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import (
    MARKERS,
    Axes,
    Figure,
    Figures,
    colour_of,
    legend_above,
    new_figure,
)
from components.figures.supervised.tasks import name_tasks
from components.maths.spacing import spaced_rows
from components.metrics.classification import expected_calibration_error


def _line(ax: Axes, x: Tensor, y: Tensor, t: int, label: str, area: Tensor | float = 18.0) -> None:
    colour = colour_of(t)
    ax.plot(x, y, color=colour, linewidth=1.3, alpha=0.85, zorder=2)
    ax.scatter(
        x,
        y,
        s=area,
        marker=MARKERS[t % len(MARKERS)],
        color=colour,
        linewidth=0,
        zorder=3,
        label=label,
    )


def coverage_curve(inside: Tensor, levels: Tensor) -> Tensor:
    """Fraction of labels inside the central interval of each level.

    Level 1 is the whole line.
    """
    covered = (inside[:, None] <= levels).to(levels.dtype).mean(0)
    return torch.where(levels >= 1, 1.0, covered)


def reliability_curve(p: Tensor, happened: Tensor, n_bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Mean probability, observed frequency and number of rows in the nonempty equal-width bins of
    p."""
    bins = (p * n_bins).long().clamp(0, n_bins - 1)
    count = torch.bincount(bins, minlength=n_bins).double()
    full = count > 0
    mean = torch.bincount(bins, weights=p.double(), minlength=n_bins)
    frequency = torch.bincount(bins, weights=happened.double(), minlength=n_bins)
    return mean[full] / count[full], frequency[full] / count[full], count[full]


def _coverage(
    predictive: GaussianMixture | PoissonMixture,
    y: Tensor,
    mask: Tensor,
    names: list[str],
    title: str,
) -> Figure:
    figure, (ax,) = new_figure(width=4.5, height=4.9)
    # level of the smallest central interval that contains y
    cdf = predictive.cdf(y)
    if isinstance(predictive, PoissonMixture):
        cdf = 0.5 * (cdf + predictive.cdf(y - 1))  # half of the probability of the count itself
    inside = (2 * cdf - 1).abs().cpu()
    levels = torch.linspace(0, 1, 21, dtype=inside.dtype)
    # central 90 % of the fractions for a calibrated prediction with independent labels
    labelled = mask.sum(0)
    spread = 1.645 * (levels * (1 - levels) / int(labelled[labelled > 0].min())).sqrt()
    ax.fill_between(
        levels,
        (levels - spread).clamp_min(0),
        (levels + spread).clamp_max(1),
        color="0.88",
        linewidth=0,
        zorder=0,
        label="90 % if calibrated",
    )
    for t, name in enumerate(names):
        if not labelled[t]:
            continue
        task_levels = inside[mask[:, t], t]
        at90 = 100 * float((task_levels <= 0.9).double().mean())
        _line(ax, levels, coverage_curve(task_levels, levels), t, f"{name} ({at90:.0f} %)")
    ax.set(xlabel="level of the central interval", ylabel="fraction of test labels inside")
    ax.set_title(f"{title} (share inside 90 %)", fontsize=9.5)
    legend_above(ax)
    return _diagonal(figure, ax)


def _reliability(
    predictive: Categorical,
    y: Tensor,
    mask: Tensor,
    names: list[str],
    n_bins: int,
    title: str,
) -> Figure:
    figure, (ax, below) = new_figure(2, 1, width=4.5, height=2.8, height_ratios=[4, 1], sharex=True)
    probs = predictive.probs.cpu()
    binary = probs.shape[-1] == 2
    confidence, guess = probs.max(-1)
    edges = torch.linspace(0, 1, n_bins + 1)
    for t, name in enumerate(names):
        is_labelled = mask[:, t]
        if not bool(is_labelled.any()):
            continue
        p, happened = (
            (probs[is_labelled, t, 1], y[is_labelled, t])
            if binary
            else (confidence[is_labelled, t], guess[is_labelled, t] == y[is_labelled, t])
        )
        ece = float(
            expected_calibration_error(
                confidence[is_labelled, t], guess[is_labelled, t] == y[is_labelled, t]
            )
        )
        mean, frequency, count = reliability_curve(p, happened, n_bins)
        _line(
            ax,
            mean,
            frequency,
            t,
            f"{name}: ECE {ece:.3f}",
            area=8 + 72 * (count / count.sum()).sqrt(),
        )
        share = torch.histc(p.double(), n_bins, 0, 1) / len(p)
        below.stairs(share.numpy(), edges.numpy(), color=colour_of(t), linewidth=1.4)
    ax.set_ylabel("frequency of class 1" if binary else "accuracy")
    below.set(
        xlabel="predicted probability of class 1" if binary else "confidence",
        ylabel="fraction\nof rows",
    )
    ax.set_title(title, fontsize=9.5)
    legend_above(ax)
    return _diagonal(figure, ax)


def _diagonal(figure: Figure, ax: Axes) -> Figure:
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return figure


def calibration(
    problem: LabelledProblem, posterior: Predicts, rng: Rng, n_bins: int = 10, n_rows: int = 6000
) -> Figures:
    """Reliability diagram for class labels (with the ECE), or coverage of central intervals for
    real labels.

    One curve per task with test labels, and no figure without any; the diagonal is perfect
    calibration, and a curve below it is overconfident.  With two classes the probability of class 1
    is plotted against its frequency, with more classes the confidence of the prediction against its
    accuracy.  Markers of a reliability diagram grow with the number of rows in the bin; the grey
    band around the diagonal of a coverage curve contains 90 % of the fractions for a calibrated
    prediction.  Of more than ``n_rows`` test rows, ``n_rows`` evenly spaced ones are used.

    Source: Guo et al. (2017), Fig 1 (reliability diagram)."""
    test = problem.test
    n = test.x.shape[0]
    rows = spaced_rows(n, n_rows, dtype=torch.float64).to(test.x.device)
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, test.x if n <= n_rows else test.x[rows], rng)
    names = name_tasks(problem)
    y = test.y[rows]
    mask = (test.mask[rows] & is_finite(predictive)).cpu()
    if not bool(mask.any()):
        return {}
    title = f"{len(rows):,} of {n:,} test rows" if len(rows) < n else f"all {n:,} test rows"
    if not isinstance(predictive, Categorical):
        return {"calibration": _coverage(predictive, y, mask, names, title)}
    return {"calibration": _reliability(predictive, y.cpu(), mask, names, n_bins, title)}
