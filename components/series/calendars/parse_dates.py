"""Dates of a column of text: format and time zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.errors import ConfigMismatchError
from components.series.maths.dates import SHOWN, has_offset, read_times

if TYPE_CHECKING:
    import pandas as pd


YEARS = ("%Y", "%y", "%G", "%c", "%x")


def to_iso(
    texts: list[str], where: list[str], date_format: str | None
) -> tuple[list[str], dict[str, str]]:
    """Convert dates to ISO 8601, and describe their time zone.

    Raises:
        ConfigMismatchError: a text is not a date, or only some have an offset from UTC."""
    if date_format is not None:
        return shorten_dates(_parse(texts, where, date_format)), {}
    times = read_times(texts)
    if times.hasnans:
        row = int(times.isna().argmax())
        raise ConfigMismatchError(
            f"{where[row]} {texts[row]!r} is not a date; write {SHOWN}, or set dataset.date_format, such as '%d/%m/%Y'"
        )
    in_utc = [has_offset(text) for text in texts]
    if not any(in_utc):
        return texts, {}
    if not all(in_utc):
        row = in_utc.index(not in_utc[0])
        raise ConfigMismatchError(
            f"{where[row]} {texts[row]} has {'an' if in_utc[row] else 'no'} offset from UTC, "
            f"unlike {texts[0]}; give an offset to all times or to none"
        )
    return shorten_dates(times), {"dates": "in UTC"}


def _parse(texts: list[str], where: list[str], date_format: str) -> pd.DatetimeIndex:
    """Parse dates by a format; in UTC where they have an offset.

    Raises:
        ConfigMismatchError: the format is invalid, or a date does not match it.
    """
    import pandas as pd

    key = f"dataset.date_format={date_format}"
    if not any(year in date_format for year in YEARS):
        raise ConfigMismatchError(
            f"{key}: contains no year; write %Y for the year, %m for the month and %d for the day"
        )
    try:
        times = pd.to_datetime(texts, format=date_format, errors="coerce", utc=True)
    except ValueError as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise ConfigMismatchError(
            f"{key}: {why}; write %Y for the year, %m for the month, %d for the day"
        ) from None
    if times.hasnans:
        row = int(times.isna().argmax())
        raise ConfigMismatchError(
            f"{where[row]} {texts[row]!r} does not match {key}; correct it, or change the key"
        )
    return times.tz_localize(None)


def shorten_dates(times: pd.DatetimeIndex) -> list[str]:
    """Times in ISO 8601, without the time of day if all are at midnight, or without seconds if all
    seconds are 0."""
    if (times == times.normalize()).all():
        return times.strftime("%Y-%m-%d").tolist()
    is_minutes = (times == times.floor("min")).all()
    return [time.isoformat(timespec="minutes" if is_minutes else "auto") for time in times]
