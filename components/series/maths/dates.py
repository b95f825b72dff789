"""Dates in ISO 8601: parsing, formatting, and positions on the axis of a figure, by pandas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

_DAY = r"\d{4}-\d\d-\d\d|\d{8}"
_OFFSET = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
FORMS = {
    "year": re.compile(r"\d{4}"),
    "month": re.compile(r"\d{4}-\d\d"),
    "quarter": re.compile(r"\d{4}-?Q[1-4]"),
    "week": re.compile(r"\d{4}-?W\d\d"),
    "day of a week": re.compile(r"\d{4}-?W\d\d-?[1-7]"),
    "day": re.compile(_DAY),
    "time": re.compile(rf"(?:{_DAY})[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?{_OFFSET}?"),
}
SHOWN = "2011-01-03, 2011-01, 2011-Q1, 2011-W01 or 2011-01-03T14:00"  # examples, for messages


def date_form(text: str) -> str | None:
    """The form of a date; None if not a date."""
    return next((form for form, pattern in FORMS.items() if pattern.fullmatch(text)), None)


def has_offset(text: str) -> bool:
    """True if a time has an offset from UTC."""
    return date_form(text) == "time" and re.search(rf"{_OFFSET}$", text) is not None


def read_times(texts: Sequence[str]) -> pd.DatetimeIndex:
    """Times [n], the first of a year, month, quarter or week; in UTC if a text has an offset; NaT
    if it is not a date."""
    import pandas as pd

    by_form: dict[str | None, list[int]] = {}
    for row, text in enumerate(texts):
        by_form.setdefault(date_form(text), []).append(row)
    out = pd.Series(pd.NaT, index=range(len(texts)), dtype="datetime64[us]")
    for form, rows in by_form.items():
        if form is not None:
            out.iloc[rows] = _read(form, [texts[row] for row in rows])
    return pd.DatetimeIndex(out)


def _read(form: str, texts: list[str]) -> Any:
    import pandas as pd

    if form == "quarter":
        return pd.PeriodIndex([text.replace("-", "") for text in texts], freq="Q").to_timestamp()
    if form in ("week", "day of a week"):
        compact = [text.replace("-", "") + ("1" if form == "week" else "") for text in texts]
        return pd.to_datetime(compact, format="%GW%V%u", errors="coerce")
    full_texts = [text + {"year": "-01-01", "month": "-01"}.get(form, "") for text in texts]
    return pd.to_datetime(full_texts, format="ISO8601", errors="coerce", utc=True).tz_localize(None)


def format_time_like(time: pd.Timestamp, like: str) -> str:
    """Format a time like another date."""
    form = date_form(like)
    dash = "-" * ("-" in like)
    if form == "quarter":
        return f"{time.year}{dash}Q{time.quarter}"
    patterns = {
        "year": "%Y",
        "month": "%Y-%m",
        "week": f"%G{dash}W%V",
        "day of a week": f"%G{dash}W%V{dash}%u",
    }
    patterns["day"] = f"%Y{dash}%m{dash}%d"
    if form in patterns:
        return time.strftime(patterns[form])
    return time.isoformat(sep=" " if " " in like else "T")[: len(like)]


@lru_cache(maxsize=8)
def to_axis(dates: tuple[str, ...]) -> NDArray[Any]:
    """Times of an axis [n], datetime64; or 1 … n if a date cannot be parsed."""
    times = read_times(dates)
    return np.arange(1, len(dates) + 1) if times.hasnans else times.to_numpy()
