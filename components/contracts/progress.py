"""Progress of long work after the steps: parts done of all parts, for a display.

Any code may report a part; a display listens where it wants to (``listen``), and elsewhere the
reports go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import TypeVar

# current part, finished parts, total number of parts
ProgressFn = Callable[[str, int, int], None]
T = TypeVar("T")
_listener: ContextVar[ProgressFn | None] = ContextVar("listener", default=None)


@contextmanager
def listen(on_part: ProgressFn | None) -> Iterator[None]:
    """Send the reports made inside this context to ``on_part``; None: nowhere."""
    before = _listener.get()
    _listener.set(on_part)
    try:
        yield
    finally:
        _listener.set(before)


@contextmanager
def count_parts(of: int) -> Iterator[Callable[[str], None]]:
    """Reporter of parts, each before it begins, that are counted.

    Inside one of several parts, nothing else is reported.
    """
    on_part = _listener.get()
    numbers = count()

    def begin(what: str) -> None:
        if on_part is not None:
            on_part(what, next(numbers), of)

    with listen(on_part if of == 1 else None):
        yield begin


def report(what: str) -> None:
    """Report a part that begins."""
    with count_parts(1) as begin:
        begin(what)


def report_each(parts: Collection[T], name: Callable[[T], str]) -> Iterator[T]:
    """Iterate over parts, and report each before it begins.

    Inside one of several parts, nothing else is reported.

    >>> with listen(print):
    ...     drawn = list(report_each(["trace", "ranks"], "figure {}".format))
    figure trace 0 2
    figure ranks 1 2
    """
    with count_parts(len(parts)) as begin:
        for part in parts:
            begin(name(part))
            yield part
