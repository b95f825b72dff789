"""Dates of a column of text: format, order of day and month, time zone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from components.errors import ConfigMismatchError
from components.series.maths.dates import SHOWN, has_offset, read_times

if TYPE_CHECKING:
    import pandas as pd


NUMBERS = re.compile(  # a day and a month in either order, a year, and perhaps a time
    r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)\d{4}(?P<clock> \d\d:\d\d(?::\d\d)?)?"
)


YEARS = ("%Y", "%y", "%G", "%c", "%x")


def to_iso(
    texts: list[str], where: list[str], date_format: str | None
) -> tuple[list[str], str | None, dict[str, str]]:
    """Dates in ISO 8601, the format of the texts where it is another one, and a fact about a guess.

    Raises:
        ConfigMismatchError: a text is no date, or days and months cannot be told apart."""
    facts: dict[str, str] = {}
    if date_format is None:
        if not (unread := (times := read_times(texts)).isna()).any():
            if not any(in_utc := [has_offset(text) for text in texts]):
                return texts, None, facts
            if not all(in_utc):
                row = in_utc.index(not in_utc[0])
                raise ConfigMismatchError(
                    f"{where[row]} {texts[row]} has {'an' if in_utc[row] else 'no'} offset from UTC, {texts[0]} is otherwise; "
                    "give all times one, or none"
                )
            return shorten_dates(list(times)), None, {"dates": "in UTC"}
        row = int(unread.argmax())
        if NUMBERS.fullmatch(texts[row]) is None:
            raise ConfigMismatchError(
                f"{where[row]} {texts[row]!r} is no date; write {SHOWN}, or set dataset.date_format, as '%d %b %Y'"
            )
        date_format = _day_or_month_first(texts, where)
        facts = {"dates": f"read as {date_format}"}
    return shorten_dates(_parse(texts, where, date_format)), date_format, facts


def _day_or_month_first(texts: list[str], where: list[str]) -> str:
    """The format of numeric dates such as 31.12.2020, by the part that exceeds 12 somewhere.

    Raises:
        ConfigMismatchError: neither or both parts exceed 12, or another date has another form.
    """
    matches = [NUMBERS.fullmatch(text) for text in texts]
    for row, match in enumerate(matches):
        if match is None:
            raise ConfigMismatchError(
                f"{where[row]} {texts[row]!r} is no date as the others are; mend it, or set dataset.date_format"
            )
    parsed_dates = [match for match in matches if match is not None]
    mark = parsed_dates[0]["mark"]
    clock = parsed_dates[0]["clock"] or ""
    clock_format = "" if not clock else " %H:%M:%S" if clock.count(":") == 2 else " %H:%M"
    orders = [f"%d{mark}%m{mark}%Y{clock_format}", f"%m{mark}%d{mark}%Y{clock_format}"]
    day_first, month_first = (
        any(int(match[name]) > 12 for match in parsed_dates) for name in ("first", "second")
    )
    if day_first == month_first:
        why = (
            "is a day and a month in two orders"
            if day_first
            else "has a day and a month that cannot be told apart"
        )
        raise ConfigMismatchError(
            f"{where[0]} {texts[0]!r} {why}; set dataset.date_format to '{orders[0]}' or '{orders[1]}'"
        )
    return orders[0] if day_first else orders[1]


def _parse(texts: list[str], where: list[str], date_format: str) -> list[pd.Timestamp]:
    """Parse dates by a format.

    Raises:
        ConfigMismatchError: the format is invalid, or a date does not have it.
    """
    import pandas as pd

    key = f"dataset.date_format={date_format}"
    if not any(year in date_format for year in YEARS):
        raise ConfigMismatchError(
            f"{key}: no year in it; write %Y for the year, %m for the month and %d for the day"
        )
    times: list[pd.Timestamp] = []
    for text, location in zip(texts, where, strict=True):
        try:
            time = pd.to_datetime(text, format=date_format, errors="coerce")
        except ValueError as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise ConfigMismatchError(
                f"{key}: {why}; write %Y for the year, %m for the month, %d for the day"
            ) from None
        if not isinstance(time, pd.Timestamp):  # NaT
            raise ConfigMismatchError(
                f"{location} {text!r} does not have the form {key}; mend it, or change the key"
            )
        times.append(time if time.tzinfo is None else time.tz_convert(None))
    return times


def shorten_dates(times: list[pd.Timestamp]) -> list[str]:
    """Times in ISO 8601, without the time of day if every one is midnight, else without seconds if
    all are 0."""
    if all(time == time.normalize() for time in times):
        return [time.strftime("%Y-%m-%d") for time in times]
    whole_minutes = all(time == time.floor("min") for time in times)
    return [time.isoformat(timespec="minutes" if whole_minutes else "auto") for time in times]
