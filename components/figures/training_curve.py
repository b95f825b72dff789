"""Learning curve of one run: the bound at its recorded steps, scores at its evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from components.figures.style import BLUE, Axes, Figures, new_figure

TRAINED = {"elbo": "ELBO", "objective": "objective"}  # what methods ascend: the first one is drawn
FEWEST_VALUES = 10  # recorded values of a curve
MOST_SCORES = 3
START_SHARE = 0.05  # share of the values, the first ones, that may lie outside the panel

# (step, phase, values: numbers, or one for each replicate), as recorded
Line = tuple[int, str, Mapping[str, Any]]


def training_curve(lines: Iterable[Line]) -> Figures:
    """The bound against steps, and next to it up to three scores, a panel each.

    Empty if a run has recorded fewer than ten values of a bound or an objective. The range of the
    first panel ignores the first twentieth of the values, where a bound often starts far below.
    """
    lines = list(lines)
    train = [(step, values) for step, phase, values in lines if phase == "train"]
    scored = {step: values for step, phase, values in lines if phase != "train"}  # the last wins
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
    """Steps that have recorded a value, and its values [steps, R]."""
    having = [(step, values[name]) for step, values in records if name in values]
    return [step for step, _ in having], np.array([np.atleast_1d(v) for _, v in having], float)


def _headline(scored: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The first scores of all parts; none where they were computed only once."""
    if len(scored) < 2:
        return []
    return [name for name in next(iter(scored.values())) if "/" not in name][:MOST_SCORES]


def _draw(axis: Axes, steps: list[int], values: np.ndarray, label: str, marker: str) -> None:
    """One line for each replicate, values [steps, R]."""
    axis.plot(steps, values, color=BLUE, lw=1.2, marker=marker, ms=4)
    axis.set(xlabel="step", ylabel=label)


def _ignore_start(axis: Axes, values: np.ndarray) -> None:
    """Choose the range of an axis by the values after the start."""
    late = values[int(START_SHARE * len(values)) :]
    late = late[np.isfinite(late)]
    if late.size and (room := 0.05 * float(late.max() - late.min())) > 0:
        axis.set_ylim(float(late.min()) - room, float(max(late.max(), np.nanmax(values))) + room)
