"""A score over the replicates of a run."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """A metric over the replicates of a run, in the units of the metric.

    Example:
        >>> from runner import Score
        >>> print(Score(mean=0.75, se=0.05, values=(0.7, 0.8)))
        0.75 ± 0.05
    """

    mean: float
    se: float  # standard error of the mean; NaN for a single replicate
    values: tuple[float, ...]  # one per replicate

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if len(self.values) < 2 else f"{self.mean:.4g} ± {self.se:.2g}"
