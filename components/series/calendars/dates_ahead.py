"""Dates that follow a series, and rows with other dates."""

from __future__ import annotations

from collections.abc import Sequence

from components.series.calendars.equal_steps import count_steps
from components.series.calendars.parse_dates import to_iso
from components.series.maths.dates import format_time_like, read_times


def dates_ahead(dates: Sequence[str], start: int, horizon: int) -> list[str]:
    """Dates of the times start, start + 1, …, in equal steps; empty for a series with fewer than
    two dates."""
    if len(dates) < 2:
        return []
    steps = count_steps(read_times(dates), "error")
    last = int(steps.counts[-1])
    more = range(1, start + horizon - len(dates) + 1)
    later = [format_time_like(steps.later(last + k * steps.step), dates[-1]) for k in more]
    return [*dates, *later][start : start + horizon]


def find_other_dates(
    texts: list[str], expected: list[str], where: str, date_format: str | None
) -> list[int]:
    """Indices of the texts that are not the expected dates.

    Raises:
        ConfigMismatchError: one has another form than the others.
    """
    if date_format is not None and read_times(texts).isna().any():
        texts, _ = to_iso(texts, [where] * len(texts), date_format)
    return [k for k, same in enumerate(read_times(texts) == read_times(expected)) if not same]
