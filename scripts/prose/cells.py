"""Numbers of cells: centre, difference and ratio, with their standard errors."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

from runner.record.checks import join_failures
from runner.report.scores.cells import mark_failures
from runner.statistics.paired_tests import MIN_REPLICATES, PairedDifference, compare_means
from scripts.prose.estimate import Estimate
from scripts.prose.scores import KeyedCell, ProseError


@dataclass(frozen=True)
class Scores:
    """Cells that a key matches, each with the number that a field shows."""

    cells: list[KeyedCell]
    estimates: list[Estimate]

    def __str__(self) -> str:
        """The number of the one cell."""
        if len(self.cells) > 1:
            raise ProseError(f"{self.cells[0]} and others match; use range, or name one")
        return str(self.estimates[0])


def estimate_centre(keyed: KeyedCell) -> Estimate:
    """The centre of a cell as a table shows it, with its SE."""
    summary = keyed.cell.judged(keyed.spec)
    value, se = (summary.mean, summary.se) if summary else (math.nan, None)
    few = count_finite(keyed) < MIN_REPLICATES
    return Estimate(value, se, keyed.spec.digits, mark_failures(keyed.cell.failed), few)


def count_finite(keyed: KeyedCell) -> int:
    """Number of replicates with a finite score."""
    return sum(map(math.isfinite, keyed.cell.values.values()))


def pair_cells(first: KeyedCell, second: KeyedCell) -> PairedDifference:
    """The difference of two cells, replicate by replicate."""
    pair = compare_means(first.cell.values, second.cell.values, first.cell.overlap)
    if pair.n == 0:
        raise ProseError(f"{first} and {second}: no common replicate")
    return pair


def estimate_difference(first: KeyedCell, second: KeyedCell) -> Estimate:
    """Difference of two cells, the first minus the second."""
    pair = pair_cells(first, second)
    failure = mark_failures(join_failures(first.cell.failed, second.cell.failed))
    few = pair.n < MIN_REPLICATES
    digits = first.spec.digits + 1
    return Estimate(pair.difference, pair.se, digits, failure, few, signed=True)


def estimate_ratio(first: KeyedCell, second: KeyedCell) -> Estimate:
    """Ratio of two cells, the first over the second.  SE by the delta method: the SE of the mean of
    a − ratio · b, divided by the mean of b.
    """
    difference = estimate_difference(first, second)
    a = first.cell.values
    b = second.cell.values
    keys = [key for key in a if key in b]
    base = statistics.fmean(b[key] for key in keys)
    ratio = statistics.fmean(a[key] for key in keys) / base
    rest = compare_means(a, {key: ratio * b[key] for key in keys}, first.cell.overlap)
    se = None if rest.se is None else abs(rest.se / base)
    return replace(difference, value=ratio, se=se, digits=2, signed=False)


def count_wins(first: KeyedCell, second: KeyedCell) -> str:
    """Number of common replicates in which the first cell is better: ``17 of 20``."""
    sign = 1 if read_direction(first) == "higher" else -1
    a = first.cell.values
    b = second.cell.values
    gains = [sign * (a[key] - b[key]) for key in a if key in b]
    return f"{sum(gain > 0 for gain in gains)} of {len(gains)}"


def read_direction(keyed: KeyedCell) -> str:
    """``higher`` or ``lower``, the better side of a cell's scores."""
    direction = keyed.spec.column_direction(keyed.cell.column)
    if direction is None:
        raise ProseError(f"{keyed}: neither side is better")
    return direction
