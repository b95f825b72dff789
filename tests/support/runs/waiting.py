"""Waiting for an event of another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(look: Callable[[], Any], seconds: float = 240.0) -> Any:
    """First true value of ``look``."""
    deadline = time.monotonic() + seconds
    while not (value := look()):
        assert time.monotonic() < deadline, "it has not happened in time"
        time.sleep(0.1)
    return value
