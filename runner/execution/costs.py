"""Costs of a replicate's training, recorded as metrics, and the budget that ends training.

Counts and CPU seconds continue from the values in a checkpoint.  Each of R replicates computed
together is assigned a share of 1/R.
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
    replicates: int = 1  # number of replicates computed together
    costs: Costs = field(default_factory=Costs)
    made: Costs = field(default_factory=Costs)  # costs of the last posterior
    cpu_seconds: float = 0.0  # before ``_began``
    ended: dict[str, Any] | None = None  # the exhausted limit and the step
    spent: float = 0.0  # share of the budget, after the last step
    start_limits: Mapping[str, float] = field(default_factory=dict)  # empty means limits of the run
    _began: float | None = None  # CPU time of this process at the start of the clock

    @contextmanager
    def running(self) -> Iterator[None]:
        """Context that counts evaluations and CPU time within the limits."""
        limits = self.start_limits or self.limits
        most = {kind: limit * self.replicates for kind, limit in limits.items()}
        with self.clock(True), counting(self.costs, most):
            yield

    @contextmanager
    def making(self) -> Iterator[None]:
        """Context that counts the costs of making a posterior, such as final draws; later steps do
        not include them."""
        self.made = Costs()
        with counting(self.made):
            yield

    @contextmanager
    def clock(self, on: bool) -> Iterator[None]:
        """Context in which the clock of CPU seconds runs or is stopped."""
        was_running = self._began is not None
        self._switch(on)
        try:
            yield
        finally:
            self._switch(was_running)

    def _switch(self, on: bool) -> None:
        self.cpu_seconds = self._cpu_now()
        self._began = time.process_time() if on else None

    def _cpu_now(self) -> float:
        running = 0.0 if self._began is None else time.process_time() - self._began
        return self.cpu_seconds + running

    def state(self) -> dict[str, float]:
        """Counts by kind and CPU seconds, summed over replicates computed together."""
        return {**self.costs.counts(), CPU_SECONDS: self._cpu_now()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Resume from the counts of a checkpoint."""
        counts = dict(state)
        self.cpu_seconds = counts.pop(CPU_SECONDS)
        if self._began is not None:
            self._began = time.process_time()
        vars(self.costs).update(vars(Costs(**counts)))

    def metrics(self) -> Scores:
        """Costs of a replicate, including its posterior, as metrics: numbers, or lists for several
        replicates together."""
        R = self.replicates
        total = Counter(self.state())
        total.update(self.made.counts())
        if R == 1:
            return {f"{COST_PREFIX}{kind}": n for kind, n in total.items()}
        # 1/R of each count, an integer if divisible
        return {
            f"{COST_PREFIX}{kind}": [n // R if isinstance(n, int) and n % R == 0 else n / R] * R
            for kind, n in total.items()
        }

    def is_spent(self, step: int) -> bool:
        """True if a limit is reached after this step, which is stored in ``ended``."""
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
