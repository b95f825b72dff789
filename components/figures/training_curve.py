"""Learning curve of a run: the bound at its recorded steps, scores at its evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from components.figures.style import BLUE, Axes, Figures, new_figure

# quantities that methods maximise; the first available one is drawn
TRAINED = {"elbo": "ELBO", "objective": "objective"}
FEWEST_VALUES = 10  # minimum recorded values of a curve
MOST_SCORES = 3
START_SHARE = 0.05  # share of first values that may lie outside the panel

# recorded (step, phase, values); values are numbers, or one per replicate
Line = tuple[int, str, Mapping[str, Any]]


def training_curve(lines: Iterable[Line]) -> Figures:
    """The bound against steps, and up to three scores, in one panel each.

    Empty if a run has recorded fewer than ten values of a bound or an objective. The range of the
    first panel ignores the first twentieth of the values, where a bound often starts far below.
    """
    lines = list(lines)
    train = [(step, values) for step, phase, values in lines if phase == "train"]
    # the last value is used
    scored = {step: values for step, phase, values in lines if phase != "train"}
    name = next((name for name in TRAINED if any(name in values for _, values in train)), "")
    steps, bound = _series(train, name)
    if len(steps) < FEWEST_VALUES:
        return {}
    scores = _headline(scored)
    figure, axes = new_figure(1, 1 + len(scores), width=4.0)
    _draw(axes[0], steps, bound, TRAINED[name], "")
    _ignore_start(axes[0], bound)
    for axis, score in zip(axes[1:], scores, strict=True):
        _draw(axis, *_series(scored.items(), score), score, "o")
    return {"training_curve": figure}


def _series(
    records: Iterable[tuple[int, Mapping[str, Any]]], name: str
) -> tuple[list[int], np.ndarray]:
    """Steps with a recorded value, and the values [steps, R]."""
    having = [(step, values[name]) for step, values in records if name in values]
    return [step for step, _ in having], np.array([np.atleast_1d(v) for _, v in having], float)


def _headline(scored: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The first scores of all parts; empty if they were computed only once."""
    if len(scored) < 2:
        return []
    return [name for name in next(iter(scored.values())) if "/" not in name][:MOST_SCORES]


def _draw(axis: Axes, steps: list[int], values: np.ndarray, label: str, marker: str) -> None:
    """Draw one line for each replicate, values [steps, R]."""
    axis.plot(steps, values, color=BLUE, lw=1.2, marker=marker, ms=4)
    axis.set(xlabel="step", ylabel=label)


def _ignore_start(axis: Axes, values: np.ndarray) -> None:
    """Choose the range of an axis by the values after the start."""
    late = values[int(START_SHARE * len(values)) :]
    late = late[np.isfinite(late)]
    if late.size and (margin := 0.05 * float(late.max() - late.min())) > 0:
        axis.set_ylim(
            float(late.min()) - margin, float(max(late.max(), np.nanmax(values))) + margin
        )
