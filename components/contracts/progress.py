"""Progress of long work after the steps: parts done of all parts, for a display.

Any code may report a part; a display listens where it wants to (``listen``), and elsewhere the
reports go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

# current part, finished parts, total number of parts
Told = Callable[[str, int, int], None]
T = TypeVar("T")


def untold(what: str, done: int, of: int) -> None:
    """Nobody listens."""


@dataclass
class Listener:
    """A display, and whether some of several parts is under way: parts of it are no news."""

    told: Told
    busy: bool = False


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listen(told: Told) -> Iterator[None]:
    """Send the reports made inside this context to ``told``."""
    token = _listener.set(Listener(told))
    try:
        yield
    finally:
        _listener.reset(token)


def report_each(parts: Collection[T], name: Callable[[T], str]) -> Iterator[T]:
    """Iterate over parts, and report each before it begins.

    Inside one of several parts, nothing else is reported.

    >>> with listen(print):
    ...     drawn = list(report_each(["trace", "ranks"], "figure {}".format))
    figure trace 0 2
    figure ranks 1 2
    """
    listener = _listener.get()
    if listener is None or listener.busy:
        yield from parts
        return
    try:
        for done, part in enumerate(parts):
            listener.told(name(part), done, len(parts))
            listener.busy = len(parts) > 1
            yield part
            listener.busy = False
    finally:
        listener.busy = False


@dataclass
class Progress:
    """Counts the parts of one evaluation."""

    told: Told
    of: int
    done: int = 0

    def begins(self, what: str) -> None:
        """The next part begins."""
        self.told(what, self.done, self.of)
        self.done += 1
