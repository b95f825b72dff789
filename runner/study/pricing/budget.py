"""``--budget 8h`` of a study: the rows that fit, the most important first.

    rows by importance, ties in their order;   row taken  ⇔  T(taken ∪ row) ≤ budget

T is the time by the clock until the last run ends, some runs at a time.  A row that does not fit is
left out, and a later one that does is taken.  Important rows are run first.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runner.errors import ConfigError
from runner.study.definition import StudyDefinition
from runner.study.pricing.forecast import makespan
from runner.study.pricing.price import Price
from runner.study.pricing.price_list import describe_seconds, price_runs, show_search
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import out

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BUDGET_HELP = (
    "time by the clock on this machine, such as 30m, 8h or 2d: runs the rows that fit, "
    "by the key importance of a row"
)
SHOWN = 8  # runs that a line names
PROBE_SHARE = 0.05  # of a budget that all probes may aim at
PROBES_END = 0.5  # of a budget: no probe begins later
SHORT_PROBE = 1.0  # seconds that a probe aims at, at least
OVERRUN = 1.1  # share of the budget up to which a further run is started


def parse_budget(text: str) -> float:
    """Seconds of ``30m``, ``8h``, ``1.5h`` or ``2d``.

    Raises:
        ConfigError: it is none of these, or not positive.
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
    """Runs that a budget pays for, and rows that it leaves out, with the reason."""

    runs: list[FrozenRun]
    seconds: float  # expected, by the clock
    left_out: dict[str, str] = field(default_factory=dict)  # row -> why


def _by_importance(study: StudyDefinition) -> list[str]:
    """Names of rows, the most important first, ties in their order."""
    return [row.name for row in sorted(study.rows, key=lambda row: -row.importance)]


def choose_rows(
    study: StudyDefinition,
    runs: Sequence[FrozenRun],
    prices: Mapping[str, Price],
    jobs: int,
    budget: float,
) -> AffordableRows:
    """Rows that fit into a budget of seconds, and their runs, the most important first."""

    def members(names: Sequence[str]) -> list[FrozenRun]:
        return [run for name in names for run in runs if run.row == name]

    def total(names: Sequence[str]) -> float:
        seconds = [prices[run.signature].wall(run.config) for run in members(names)]
        return makespan([], seconds, jobs)

    taken: list[str] = []
    left_out: dict[str, str] = {}
    for name in _by_importance(study):
        row = members([name])
        errors = [error for run in row if (error := prices[run.signature].error)]
        if errors:
            left_out[name] = f"no price: {errors[0]}"
        elif row and total([*taken, name]) > budget:
            left_out[name] = f"about {describe_seconds(total([name]))}"
        elif row:
            taken.append(name)
    return AffordableRows(members(taken), total(taken), left_out)


@dataclass(frozen=True)
class TimeBudget:
    """Time that a study may take, and how prices are found."""

    seconds: float
    probe_seconds: float | None  # None: from records alone
    rest: str  # command that runs what is left out


@dataclass
class Deadline:
    """End of a budget: runs that wait and would end too late are not started."""

    ends: float = math.inf  # of the monotonic clock
    seconds: Mapping[str, float] = field(default_factory=dict)  # expected, of a run by signature
    rest: str = ""  # command that runs what is left out
    dropped: list[FrozenRun] = field(default_factory=list)

    def drop_late(self, waiting: list[FrozenRun]) -> None:
        """Take out of ``waiting`` the runs that would end after the budget."""
        now = time.monotonic()
        for run in list(waiting):
            if now + self.seconds.get(run.signature, 0.0) > self.ends:
                waiting.remove(run)
                self.dropped.append(run)


def spend(
    budget: TimeBudget, snapshot: Snapshot, runs: list[FrozenRun], jobs: int
) -> tuple[list[FrozenRun], Deadline]:
    """Runs that a budget pays for, and its end; says what is left out and how to run it.

    Probes are paid for, too.
    """
    if not runs:
        return [], Deadline()
    began = time.monotonic()
    seconds = budget.probe_seconds
    if seconds is not None:
        seconds = min(seconds, max(SHORT_PROBE, PROBE_SHARE * budget.seconds * jobs / len(runs)))
    places = {name: place for place, name in enumerate(_by_importance(snapshot.study))}
    runs = sorted(runs, key=lambda run: places[run.row])
    prices = price_runs(snapshot, runs, jobs, seconds, began + PROBES_END * budget.seconds)
    spent = time.monotonic() - began
    show_search(prices, spent)
    remaining = budget.seconds - spent
    choice = choose_rows(snapshot.study, runs, prices, jobs, remaining)
    rows = len({run.row for run in choice.runs})
    fits = (
        f"rows that fit: {rows}, runs: {len(choice.runs)}, "
        f"about {describe_seconds(choice.seconds)} with {jobs} at a time"
        if rows
        else "no row fits"
    )
    left = describe_seconds(remaining) if remaining > 0.0 else "nothing"
    out.print(f"budget   {describe_seconds(budget.seconds)}, {left} left: {fits}")
    for name, why in choice.left_out.items():
        out.print(f"left out {name}: {why}")
    if choice.left_out:
        out.print(f"the rest {budget.rest}")
    ends = began + OVERRUN * budget.seconds
    expected = {run.signature: prices[run.signature].wall(run.config) for run in choice.runs}
    return choice.runs, Deadline(ends, expected, budget.rest)


def report_late(deadline: Deadline) -> None:
    """Name runs that were not started, as others took longer than expected."""
    late = deadline.dropped
    if late:
        names = "; ".join(run.name for run in late[:SHOWN])
        more = f"; {len(late) - SHOWN} more" if len(late) > SHOWN else ""
        out.print(f"left out as no time was left: {names}{more}")
        out.print(f"the rest {deadline.rest}")
