"""Progress of long work after the steps: finished parts out of all parts, for a display.

Any code may report a part; a display subscribes with ``listen``, and without one the reports are
discarded.
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
    """Send reports made inside this context to ``on_part``; None discards them."""
    outer = _listener.get()
    _listener.set(on_part)
    try:
        yield
    finally:
        _listener.set(outer)


@contextmanager
def count_parts(of: int) -> Iterator[Callable[[str], None]]:
    """Function that reports and counts parts, each before it begins.

    Nested reports inside one of several parts are discarded.
    """
    on_part = _listener.get()
    numbers = count()

    def begin(what: str) -> None:
        if on_part is not None:
            on_part(what, next(numbers), of)

    with listen(on_part if of == 1 else None):
        yield begin


def report(what: str) -> None:
    """Report the beginning of a part."""
    with count_parts(1) as begin:
        begin(what)


def report_each(parts: Collection[T], name: Callable[[T], str]) -> Iterator[T]:
    """Iterate over parts, and report each before it begins.

    Nested reports inside one of several parts are discarded.

    >>> with listen(print):
    ...     drawn = list(report_each(["trace", "ranks"], "figure {}".format))
    figure trace 0 2
    figure ranks 1 2
    """
    with count_parts(len(parts)) as begin:
        for part in parts:
            begin(name(part))
            yield part
