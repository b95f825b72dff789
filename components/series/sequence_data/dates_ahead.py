"""Dates that follow a series, and rows that must have them."""

from __future__ import annotations

from collections.abc import Sequence

from components.errors import ConfigMismatchError
from components.series.maths.dates import format_time_like, has_offset, read_times, strip_utc_offset
from components.series.sequence_data.calendar import to_iso
from components.series.sequence_data.equal_steps import count_steps


def dates_ahead(dates: Sequence[str], start: int, horizon: int) -> list[str]:
    """Dates of the times start, start + 1, …, in the equal steps of the given ones; none of a
    series without two dates."""
    if len(dates) < 2:
        return []
    steps = count_steps(read_times(dates), "error")
    last = int(steps.counts[-1])
    more = range(1, start + horizon - len(dates) + 1)
    later = [format_time_like(steps.later(last + k * steps.step), dates[-1]) for k in more]
    return [*dates, *later][start : start + horizon]


def check_dates_ahead(
    texts: list[str], where: list[str], expected: list[str], date_format: str | None
) -> None:
    """Check that dates are the expected ones.

    Raises:
        ConfigMismatchError: one is another date, or none; the message names the expected date.
    """
    dates = texts
    if date_format is not None and read_times(texts).isna().any():
        dates, _ = to_iso(texts, where, date_format)
    if not has_offset(expected[0]):
        dates = [strip_utc_offset(date) for date in dates]
    for row in (read_times(dates) != read_times(expected)).nonzero()[0][:1]:
        raise ConfigMismatchError(
            f"{where[row]} {texts[row]!r}, expected {expected[row]}: rows are the times that follow the series, one by one"
        )
