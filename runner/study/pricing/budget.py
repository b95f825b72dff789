"""``--budget 8h`` of a study: select the rows that fit, most important first.

    rows by importance, ties in their order;   row taken  ⇔  T(taken ∪ row) ≤ budget

T is the wall-clock time until the last run ends, with some runs in parallel.  A row that does not
fit is skipped, and a later one that fits is taken.  Important rows are run first.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.errors import list_names
from runner.errors import ConfigError
from runner.study.definition import StudyDefinition
from runner.study.pricing.price import Prices
from runner.study.pricing.price_list import (
    group_by_row,
    price_runs,
    show_search,
)
from runner.study.pricing.study_records import format_seconds, makespan
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import out
from runner.terminal.tables import print_named

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BUDGET_HELP = (
    "wall-clock time on this machine, such as 30m, 8h or 2d: only rows that fit are run, "
    "in the order of their key importance"
)
SHOWN = 8  # largest number of runs in a line
PROBE_SHARE = 0.05  # target share of a budget for all probes
PROBES_END = 0.5  # share of a budget after which no probe begins
SHORT_PROBE = 1.0  # shortest target time of a probe in seconds
OVERRUN = 1.1  # share of the budget up to which runs are started


def parse_budget(text: str) -> float:
    """Parse ``30m``, ``8h``, ``1.5h`` or ``2d`` to seconds.

    Raises:
        ConfigError: the text has another form or is not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-z]+)", text.strip().lower())
    seconds = float(match[1]) * UNITS.get(match[2], 0.0) if match else 0.0
    if not seconds > 0.0:
        raise ConfigError(
            f"--budget {text}: must be a number above 0 with a unit: s, m, h or d; such as 30m, 8h or 2d"
        )
    return seconds


@dataclass(frozen=True)
class AffordableRows:
    """Runs within a budget, and excluded rows with reasons."""

    runs: list[FrozenRun]
    seconds: float  # expected wall-clock time
    left_out: dict[str, str] = field(default_factory=dict)  # row -> reason


def sort_by_importance(study: StudyDefinition, runs: Sequence[FrozenRun]) -> list[FrozenRun]:
    """Sort runs by importance of their rows, ties in the order of the study."""
    rows = sorted(study.rows, key=lambda row: -row.importance)
    places = {row.name: place for place, row in enumerate(rows)}
    return sorted(runs, key=lambda run: places[run.row])


def choose_rows(
    runs: Sequence[FrozenRun], prices: Prices, jobs: int, seconds: float
) -> AffordableRows:
    """Choose the rows that fit into ``seconds``; ``runs`` are sorted by importance."""

    def total(members: Sequence[FrozenRun]) -> float:
        return makespan([], [prices[run.signature].wall(run.config) for run in members], jobs)

    taken: list[FrozenRun] = []
    left_out: dict[str, str] = {}
    for name, row in group_by_row(runs).items():
        errors = [error for run in row if (error := prices[run.signature].error)]
        if errors:
            left_out[name] = f"no price: {errors[0]}"
        elif total([*taken, *row]) > seconds:
            left_out[name] = f"about {format_seconds(total(row))}"
        else:
            taken += row
    return AffordableRows(taken, total(taken), left_out)


@dataclass
class TimeBudget:
    """Time limit of a study; waiting runs that would end too late are not started."""

    seconds: float = math.inf
    probe_seconds: float | None = None  # time of a probe; None means prices from records only
    rest: str = ""  # command for the excluded rows
    ends: float = math.inf  # end on the monotonic clock
    expected: Mapping[str, float] = field(default_factory=dict)  # seconds of a run by signature
    dropped: list[FrozenRun] = field(default_factory=list)

    def choose(self, snapshot: Snapshot, runs: list[FrozenRun], jobs: int) -> list[FrozenRun]:
        """Choose the runs within the budget, which includes probes; prints the excluded rows and the
        command to run them.
        """
        if not runs or self.seconds == math.inf:
            return runs
        began = time.monotonic()
        seconds = self.probe_seconds
        if seconds is not None:
            seconds = min(seconds, max(SHORT_PROBE, PROBE_SHARE * self.seconds * jobs / len(runs)))
        runs = sort_by_importance(snapshot.study, runs)
        prices = price_runs(snapshot, runs, jobs, seconds, began + PROBES_END * self.seconds)
        spent = time.monotonic() - began
        show_search(prices, spent)
        remaining = self.seconds - spent
        choice = choose_rows(runs, prices, jobs, remaining)
        rows = len({run.row for run in choice.runs})
        fits = (
            f"rows that fit: {rows}, runs: {len(choice.runs)}, "
            f"about {format_seconds(choice.seconds)} with {jobs} in parallel"
            if rows
            else "no row fits"
        )
        remaining_text = format_seconds(remaining) if remaining > 0.0 else "nothing"
        print_named("budget", f"{format_seconds(self.seconds)}, {remaining_text} left: {fits}")
        for name, why in choice.left_out.items():
            print_named("skipped", f"{name}: {why}")
        if choice.left_out:
            print_named("the rest", self.rest)
        self.ends = began + OVERRUN * self.seconds
        self.expected = {r.signature: prices[r.signature].wall(r.config) for r in choice.runs}
        return choice.runs

    def drop_late(self, waiting: list[FrozenRun]) -> None:
        """Remove runs from ``waiting`` that would end after the budget."""
        now = time.monotonic()
        for run in list(waiting):
            if now + self.expected.get(run.signature, 0.0) > self.ends:
                waiting.remove(run)
                self.dropped.append(run)

    def report_late(self) -> None:
        """Report runs that were not started because others took longer than expected."""
        if self.dropped:
            names = list_names([run.name for run in self.dropped], SHOWN, "; ")
            out.print(f"skipped, out of time: {names}")
            print_named("the rest", self.rest)
