"""Dates in a column of inputs, converted to numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

PARTS = ("year", "month", "weekday", "hour")
EPOCH = datetime(1970, 1, 1)
_DATES = "%Y-%m-%d;%Y/%m/%d;%d.%m.%Y;%d/%m/%Y;%m/%d/%Y;%d-%m-%Y;%m-%d-%Y;%d %b %Y;%b %d, %Y;%d.%m.%y;%d/%m/%y;%m/%d/%y"
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%z", " %H:%M:%S.%f")
FORMATS = [date + clock for date in _DATES.split(";") for clock in _CLOCKS]


def date_values(text: str, form: str, parts: Sequence[str]) -> list[float] | None:
    """Parts of a date: days since 1970, year, month, weekday (1 is Monday), hour.  None if the text
    has a different format."""
    try:
        time = datetime.strptime(text, form).replace(tzinfo=None)
    except ValueError:
        return None
    values = {
        "days": (time - EPOCH) / timedelta(days=1),
        "year": time.year,
        "month": time.month,
        "weekday": time.isoweekday(),
        "hour": time.hour + time.minute / 60,
    }
    return [values[part] for part in parts]


def find_date_formats(texts: Collection[str]) -> list[str]:
    """Formats of ``datetime.strptime`` that match all texts; several formats are ambiguous."""
    forms = FORMATS
    for text in texts:
        forms = [form for form in forms if date_values(text, form, ()) is not None]
    readings = {str([date_values(text, form, ["days"]) for text in texts]): form for form in forms}
    return list(readings.values())
