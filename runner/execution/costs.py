"""Costs of a replicate's training, which its record keeps as metrics, and the budget that ends it.

Counts, and CPU seconds, go on where a checkpoint stopped.  With R replicates computed together
each has the R-th part.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from components.contracts.costs.counts import Costs, counting
from components.metrics.names import COST_PREFIX
from runner.execution.scores import Scores

CPU_SECONDS = "cpu_seconds"


@dataclass
class CostMeter:
    """Costs so far, and the limits of a budget by kind."""

    limits: Mapping[str, float] = field(default_factory=dict)
    replicates: int = 1  # computed together
    costs: Costs = field(default_factory=Costs)
    made: Costs = field(default_factory=Costs)  # of the posterior that was made last
    cpu_seconds: float = 0.0  # until ``_began``
    ended: dict[str, Any] | None = None  # the limit that was reached, and the step
    spent: float = 0.0  # share of the budget, after the last step
    start_limits: Mapping[str, float] = field(default_factory=dict)  # none: those of the run
    _began: float | None = None  # CPU seconds of this process when the clock was started

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts what is evaluated inside, within the limits, and runs the clock."""
        limits = self.start_limits or self.limits
        most = {kind: limit * self.replicates for kind, limit in limits.items()}
        with self.clock(True), counting(self.costs, most):
            yield

    @contextmanager
    def making(self) -> Iterator[None]:
        """Counts what a posterior needs that is made inside, draws through a kernel, say: a cost of
        ending here, which the steps that follow do not have."""
        self.made = Costs()
        with counting(self.made):
            yield

    @contextmanager
    def clock(self, on: bool) -> Iterator[None]:
        """Runs the clock of CPU seconds inside, or stops it there."""
        before = self._began is not None
        self._switch(on)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, on: bool) -> None:
        self.cpu_seconds = self._cpu_now()
        self._began = time.process_time() if on else None

    def _cpu_now(self) -> float:
        running = 0.0 if self._began is None else time.process_time() - self._began
        return self.cpu_seconds + running

    def state(self) -> dict[str, float]:
        """Counts by kind, and CPU seconds, of all replicates that are computed together."""
        return {**self.costs.counts(), CPU_SECONDS: self._cpu_now()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Resumes from the counts of a checkpoint."""
        counts = dict(state)
        self.cpu_seconds = counts.pop(CPU_SECONDS)
        if self._began is not None:
            self._began = time.process_time()
        vars(self.costs).update(vars(Costs(**counts)))

    def metrics(self) -> Scores:
        """Costs of a replicate as metrics, those of its posterior among them: numbers, or a list of
        them for several together."""
        R = self.replicates
        total = Counter(self.state())
        total.update(self.made.counts())
        if R == 1:
            return {f"{COST_PREFIX}{kind}": n for kind, n in total.items()}
        # the R-th part of each count: an integer where it is one
        return {
            f"{COST_PREFIX}{kind}": [n // R if isinstance(n, int) and n % R == 0 else n / R] * R
            for kind, n in total.items()
        }

    def is_spent(self, step: int) -> bool:
        """True if a limit is reached after this step, which ``ended`` then keeps."""
        if not self.limits:
            return False
        state = self.state()
        shares = {k: state.get(k, 0) / (v * self.replicates) for k, v in self.limits.items()}
        kind = max(shares, key=lambda k: shares[k])
        self.spent = shares[kind]
        if self.spent < 1:
            return False
        self.ended = {"kind": kind, "limit": self.limits[kind], "step": step}
        return True
