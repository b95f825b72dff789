"""Dates of a series: read, put to the test, and what is between them where some are not there."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from components.trouble import Misfit

DAY = datetime.timedelta(days=1)
MONTH = 28  # days between dates, from which on they may be the same day of each month


@dataclass(frozen=True)
class Calendar:
    """T times at equal steps, of which some have a line in the file."""

    dates: tuple[str, ...]  # ISO 8601 [T]
    places: list[int]  # of the file's lines among them

    @property
    def gaps(self) -> int:
        """Times without a line."""
        return len(self.dates) - len(self.places)


def calendar(texts: list[str], lines: list[int], file: str, column: str, fill: bool) -> Calendar:
    """Dates that rise by equal steps: days, hours, or months where all are the same day of a month (2011-01 is its first), or
    its last.

    The step is the commonest difference.  ``fill``: times that are not there take their place in the series; otherwise they are
    a mistake.

    Raises:
        Misfit: no date, out of order, there twice, between two steps, or a gap; it names the line.
    """
    times = [_read(text, f"{file}, line {line}: {column}") for text, line in zip(texts, lines, strict=True)]
    for k in range(1, len(times)):
        where = f"{file}, line {lines[k]}: {column} {texts[k]}"
        if times[k] == times[k - 1]:
            raise Misfit(f"{where} is there twice; keep one of the lines")
        if times[k] < times[k - 1]:
            raise Misfit(f"{where} comes after {texts[k - 1]}; sort the lines by {column}")
    if len(times) < 3:
        return Calendar(tuple(texts), list(range(len(texts))))
    ends = all((time + DAY).day == 1 for time in times)
    monthly = ends or len({time.replace(year=2000, month=1) for time in times}) == 1
    monthly &= min((b - a).days for a, b in itertools.pairwise(times)) >= MONTH
    count: Callable[[datetime.datetime], int] = _months if monthly else _seconds
    at = [count(time) for time in times]
    step = Counter(b - a for a, b in itertools.pairwise(at)).most_common(1)[0][0]
    dates, places = [texts[0]], [0]
    for k in range(1, len(at)):
        skipped, rest = divmod(at[k] - at[k - 1], step)
        between = f"between {texts[k - 1]} and {texts[k]}"
        if rest:
            raise Misfit(
                f"{file}, line {lines[k]}: {column} has no equal steps {between}; elsewhere {_named(step, monthly)}"
            )
        if skipped > 1 and not fill:
            raise Misfit(f"{file}, line {lines[k]}: {skipped - 1} missing {between}; add lines, or dataset.gaps=allow")
        back = DAY if monthly and ends else 0 * DAY
        later = [_later(times[k - 1] + back, j * step, monthly) - back for j in range(1, skipped)]
        dates += [time.isoformat()[: len(texts[0])] for time in later] + [texts[k]]
        places.append(len(dates) - 1)
    return Calendar(tuple(dates), places)


def place(dates: tuple[str, ...], text: str, key: str) -> int:
    """Where the first of the dates stands that is no earlier.

    Raises:
        Misfit: it is no date, or not between the first and the last."""
    if not dates:
        raise Misfit(f"{key}={text}: a date asks for a column of dates, dataset.date; or give a number")
    asked, times = _read(text, key), [_read(date, key) for date in dates]
    if not times[0] < asked <= times[-1]:
        raise Misfit(f"{key}={text}: the series is from {dates[0]} to {dates[-1]}; name a date between them")
    return next(k for k, time in enumerate(times) if time >= asked)


def _read(text: str, where: str) -> datetime.datetime:
    """Raises Misfit."""
    whole = f"{text}-01-01"[: max(len(text), 10)] if len(text) in (4, 7) else text
    try:
        time = datetime.datetime.fromisoformat(whole)
    except ValueError:
        raise Misfit(f"{where} {text!r} is no date; write 2011-01-03, 2011-01 or 2011-01-03T14:00") from None
    return time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


def _months(time: datetime.datetime) -> int:
    return 12 * time.year + time.month


def _seconds(time: datetime.datetime) -> int:
    return round((time - datetime.datetime(1970, 1, 1)).total_seconds())


def _later(time: datetime.datetime, steps: int, monthly: bool) -> datetime.datetime:
    """So many months or seconds later."""
    if monthly:
        year, month = divmod(_months(time) - 1 + steps, 12)
        return time.replace(year=year, month=month + 1)
    return time + datetime.timedelta(seconds=steps)


def _named(step: int, monthly: bool) -> str:
    if monthly:
        return f"{step} months"
    return f"{step // 86400} days" if step % 86400 == 0 else f"{step} seconds"
