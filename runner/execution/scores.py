"""Output of a step or an evaluation, as plain numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor

Scores = dict[str, Any]  # name -> number, or a list where replicates are a dimension


def plain(values: Mapping[str, Any]) -> Scores:
    """Tensors as numbers, or as lists where replicates are a dimension."""
    return {k: v.tolist() if isinstance(v, Tensor) else v for k, v in values.items()}


def means(scores: Scores) -> dict[str, float]:
    """One number for each name: the mean where replicates are a dimension."""
    return {k: sum(v) / len(v) if isinstance(v, list) else float(v) for k, v in scores.items()}


Layout = tuple[tuple[str, int | None], ...]  # names, each with its replicates; None: one number


class _Part(NamedTuple):
    """Steps in a row that recorded the same names."""

    layout: Layout
    steps: array[int]
    values: array[float]  # of each step in turn, all its names


class StepTrace:
    """Values by step, under the names that are kept; iterates over (step, {name: value}).

    A list of dicts would take 0.3 kB a step, which fills memory in runs of millions of steps.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._parts: list[_Part] = []

    def append(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Keeps what a step recorded; numbers, or lists of one for each replicate."""
        kept = [(name, metrics[name]) for name in metrics if name in self._names]
        if not kept:
            return
        layout = tuple((n, len(v) if isinstance(v, list) else None) for n, v in kept)
        if not self._parts or self._parts[-1].layout != layout:
            self._parts.append(_Part(layout, array("q"), array("d")))
        part = self._parts[-1]
        part.steps.append(step)
        for _, value in kept:
            part.values.extend(value if isinstance(value, list) else (value,))

    def __iter__(self) -> Iterator[tuple[int, Scores]]:
        for layout, steps, values in self._parts:
            at = 0
            for step in steps:
                record: Scores = {}
                for name, width in layout:
                    record[name] = values[at] if width is None else values[at : at + width].tolist()
                    at += 1 if width is None else width
                yield step, record
