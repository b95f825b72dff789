"""Dates of a series: parsing, validation, and filling of gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from components.errors import ConfigMismatchError
from components.problems.input_columns import TimeColumn
from components.series.calendars.equal_steps import (
    DAY,
    HOUR,
    EqualSteps,
    Gaps,
    are_weekdays,
    count_steps,
)
from components.series.calendars.parse_dates import to_iso
from components.series.maths.dates import format_time_like, has_offset, read_times

if TYPE_CHECKING:
    import pandas as pd

# most times in a series that consists mainly of gaps; a longer one is treated as a mistake
MOST_TIMES = 100_000
CLOCK_CHANGE_HINT = (
    "local times across a clock change need an offset, as in 2024-10-27T02:00+01:00, or UTC"
)
UTC_HINT = "; times are read in UTC: for local midnights give only the dates"


@dataclass(frozen=True)
class Calendar:
    """T equally spaced times; only some of them may have a line in the file."""

    dates: tuple[str, ...]  # ISO 8601 [T]
    places: list[int]  # indices of the file's lines among the dates
    facts: dict[str, str] = field(default_factory=dict)  # for the terminal and the manifest
    time: TimeColumn | None = None  # column of the file

    @property
    def gaps(self) -> int:
        """Times without a line."""
        return len(self.dates) - len(self.places)


def calendar(
    texts: list[str],
    lines: list[int],
    file: str,
    column: str,
    gaps: Gaps,
    date_format: str | None = None,
) -> Calendar:
    """Check that dates rise by equal steps: hours, days, months (all on one day of the month, or on
    its last), or business days (all from Monday to Friday).

    The step is the most common difference.  Times with an offset from UTC are read in UTC.  With
    ``gaps``, missing times (on every day, or from Monday to Friday) are added to the series;
    without, they are an error.

    Raises:
        ConfigMismatchError: a date is invalid, ambiguous, out of order, repeated or between two
            steps, or there is a gap; the error names the line.
    """
    where = [f"{file}, line {line}: {column}" for line in lines]
    dates, facts = to_iso(texts, where, date_format)
    time = TimeColumn(column, date_format)
    times = read_times(dates)
    labels = [
        text if text == date else f"{text} ({date})"
        for text, date in zip(texts, dates, strict=True)
    ]
    _check_order(times, labels, where, column)
    if len(times) < 3:
        return Calendar(tuple(dates), list(range(len(texts))), facts, time)
    steps = count_steps(times, gaps)
    out = [dates[0]]
    places = [0]
    for k in range(1, len(texts)):
        skipped, rest = divmod(int(steps.counts[k] - steps.counts[k - 1]), steps.step)
        between = f"between {labels[k - 1]} and {labels[k]}"
        if rest:
            raise ConfigMismatchError(
                f"{where[k]} has no equal steps {between}; elsewhere {steps}{UTC_HINT if has_offset(texts[k]) else ''}"
            )
        if skipped > 1 and gaps == "error":
            start = where[k].removesuffix(f": {column}")
            hint = _gap_hint(steps, skipped - 1, times)
            raise ConfigMismatchError(
                f"{start}: {skipped - 1} missing {between}; add lines, or {hint}"
            )
        if len(out) + skipped > MOST_TIMES and skipped > len(texts):
            raise ConfigMismatchError(
                f"{where[k]} {labels[k]} follows a gap of {skipped - 1:,} times of {steps} after "
                f"{labels[k - 1]}; correct the date, or remove the lines after the gap"
            )
        first = int(steps.counts[k - 1])
        out += [
            format_time_like(steps.later(first + j * steps.step), dates[k - 1])
            for j in range(1, skipped)
        ] + [dates[k]]
        places.append(len(out) - 1)
    facts = {"steps": f"{steps}, {out[0]} to {out[-1]}"} | facts
    return Calendar(tuple(out), places, facts, time)


def _gap_hint(steps: EqualSteps, missing: int, times: pd.DatetimeIndex) -> str:
    """The setting that allows a gap of ``missing`` times."""
    in_seconds = steps.unit == "seconds"
    if in_seconds and are_weekdays(times) and steps.step == DAY:
        return "dataset.gaps=business_days (Monday to Friday) or allow"
    if in_seconds and missing * steps.step == HOUR:
        return f"dataset.gaps=allow; {CLOCK_CHANGE_HINT}"
    return "dataset.gaps=allow"


def place(dates: tuple[str, ...], text: str, key: str, date_format: str | None = None) -> int:
    """Index of the first date that is not earlier than ``text``.

    Raises:
        ConfigMismatchError: ``text`` is not a date, or is outside the series."""
    if not dates:
        raise ConfigMismatchError(
            f"{key}={text}: a date requires a column of dates; set dataset.date, or give a number"
        )
    times = read_times([text])
    if times.hasnans:
        times = read_times(to_iso([text], [f"{key}:"], date_format)[0])
    time = times[0]
    times = read_times(dates)
    if not times[0] < time <= times[-1]:
        raise ConfigMismatchError(
            f"{key}={text}: the series runs from {dates[0]} to {dates[-1]}; choose a date in this range"
        )
    return int((times >= time).argmax())


def _check_order(times: pd.DatetimeIndex, texts: list[str], where: list[str], column: str) -> None:
    """Check that dates rise strictly.

    Raises:
        ConfigMismatchError: a date is repeated or out of order.
    """
    clocks = f"; {CLOCK_CHANGE_HINT}" if (times != times.normalize()).any() else ""
    if not (bad := np.flatnonzero(times[1:] <= times[:-1])).size:
        return
    k = int(bad[0]) + 1
    if times[k] == times[k - 1]:
        raise ConfigMismatchError(
            f"{where[k]} {texts[k]} occurs twice; keep one of the lines{clocks}"
        )
    raise ConfigMismatchError(
        f"{where[k]} {texts[k]} comes after {texts[k - 1]}; sort the lines by {column}{clocks}"
    )
