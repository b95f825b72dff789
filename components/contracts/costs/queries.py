"""Costs of an attack: rows that the attacked model predicts for it, and rows of gradients.

The victim counts every query of an attack, however its answers are used, and separately from the
costs of training (``counts``).  Nothing is counted outside ``counting_queries``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Queries:
    """Query counts of one attack's evaluation, summed over its sizes.

    A row of a victim with several draws or members counts once.
    """

    forwards: int = 0  # rows predicted, including those for gradients
    gradients: int = 0  # rows of input gradients; one per class for a Jacobian
    cpu_seconds: float = 0.0  # CPU seconds inside ``counting_queries``


class _CurrentQueries(threading.local):
    queries: Queries | None = None  # None if counting is off


_current = _CurrentQueries()


@contextmanager
def counting_queries(queries: Queries) -> Iterator[None]:
    """Count this thread's queries of victims inside the context, and the CPU seconds of the
    process."""
    outer = _current.queries
    _current.queries = queries
    start_time = time.process_time()
    try:
        yield
    finally:
        queries.cpu_seconds += time.process_time() - start_time
        _current.queries = outer


def count_queries(forwards: int, gradients: int = 0) -> None:
    """Add to the costs of the current attack; a no-op outside of one."""
    queries = _current.queries
    if queries is not None:
        queries.forwards += forwards
        queries.gradients += gradients
