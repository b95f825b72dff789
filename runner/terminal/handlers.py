"""Handlers of signals for a part of a command."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handle_signals(
    handler: Callable[[int, FrameType | None], None], *numbers: int
) -> Iterator[None]:
    """Context in which a function handles signals; earlier handlers are restored on exit.

    Raises:
        ValueError: this is not the main thread.
    """
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in earlier.items():
            signal.signal(number, previous)
