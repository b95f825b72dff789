"""Costs of an attack: rows that the attacked model predicts for it, and rows of gradients.

They are counted by the victim that an attack is shown, whatever the attack does with the answers, and
apart from the costs of training (``counts``): nothing is counted outside ``counting_queries``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Queries:
    """Counts of the evaluation of one attack, over all of its sizes.

    A row of a victim with several draws or members counts once.
    """

    forwards: int = 0  # rows predicted, those that a gradient needs among them
    gradients: int = 0  # rows of gradients in the input; of a Jacobian one for each class
    cpu_seconds: float = 0.0  # inside ``counting_queries``


class _CurrentQueries(threading.local):
    queries: Queries | None = None  # None: nothing is counted


_current = _CurrentQueries()


@contextmanager
def counting_queries(queries: Queries) -> Iterator[None]:
    """Counts what this thread asks of victims inside, and CPU seconds of the process."""
    before = _current.queries
    _current.queries = queries
    began = time.process_time()
    try:
        yield
    finally:
        queries.cpu_seconds += time.process_time() - began
        _current.queries = before


def count_queries(forwards: int = 0, gradients: int = 0) -> None:
    """Adds to the costs of the attack in which it is called; elsewhere it does nothing."""
    queries = _current.queries
    if queries is not None:
        queries.forwards += forwards
        queries.gradients += gradients
