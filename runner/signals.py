"""Ctrl-C and SIGTERM: a step is finished and checkpointed before the run stops."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(Exception):
    """SIGINT or SIGTERM: the run has checkpointed and can be resumed."""

    def __init__(self, signum: int, step: int):
        super().__init__(f"interrupted at step {step}; the same command goes on from there")
        self.code = 128 + signum


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """The signals received, so that a step is finished and checkpointed before the run stops."""
    received: list[int] = []

    def note(signum: int, _frame: Any) -> None:
        if received and signum == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signum)

    try:
        before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever runs us handles signals
        yield received
        return
    try:
        yield received
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
