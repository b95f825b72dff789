"""States of a study's runs, and their display on the terminal."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from typing_extensions import TypedDict

from runner.record.lines import newest_line
from runner.study.executor import RunningProcess
from runner.study.job_pool import STOPPED_EXIT_CODES
from runner.study.left_going import DetachedRun
from runner.study.pricing.study_records import Forecast, format_seconds
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import out
from runner.terminal.tables import print_table
from runner.terminal.typed_values import format_typed


class RunLine(TypedDict):
    """State of a run; ``refused`` is the reason why it cannot be composed, if any."""

    row: str
    cell: str
    state: str
    run: str
    refused: str


FAILED = ("failed", "diverged", "crashed")


def state(snapshot: Snapshot, run: FrozenRun) -> str:
    """State in the record, but ``running`` if a process holds the run, and ``crashed`` for a
    running state without a process.
    """
    recorded = snapshot.state(run)
    if recorded in ("refused", "done", "failed", "diverged"):
        return recorded
    if DetachedRun(snapshot, run).going():
        return "running"
    return "crashed" if recorded in ("running", "pending") else recorded


def _end_state(recorded: str, code: int) -> str:
    """State of a run that ended; a failure without an entry in the record counts as a crash or a
    refusal.
    """
    is_late = recorded == "done" and code > 128  # a signal during the last writes
    ends = (*FAILED, "interrupted", "running")
    return recorded if code == 0 or is_late or recorded in ends else "failed"


def _column(run: FrozenRun) -> str:
    """Column heading for a run's cell."""
    return " ".join(f"{k.split('.')[-1]}={format_typed(v)}" for k, v in run.cell.items())


def describe_states(
    snapshot: Snapshot, runs: list[FrozenRun], words: Callable[[FrozenRun, str], str]
) -> list[RunLine]:
    """States of a study's runs in machine-readable form, one per line; ``words`` describes the
    state of a run and of its queued job.
    """
    return [
        {
            "row": run.row,
            "cell": _column(run),
            "state": words(run, state(snapshot, run)),
            "run": f"{run.experiment}/{run.signature}" if run.signature else "",
            "refused": run.refused or "",
        }
        for run in runs
    ]


def print_status(snapshot: Snapshot, runs: list[FrozenRun], lines: list[RunLine]) -> None:
    """Print a table of the states of a study's runs: one line per row, one column per cell."""
    in_order = sorted(
        runs, key=lambda run: [v if isinstance(v, int | float) else 0 for v in run.cell.values()]
    )
    cells = list(dict.fromkeys(_column(run) for run in in_order))
    states = {(line["row"], line["cell"]): line["state"] for line in lines}
    table = [
        [row, *(states.get((row, cell), "") for cell in cells)]
        for row in dict.fromkeys(run.row for run in runs)
    ]
    print_table(f"study {snapshot.name}, {snapshot.taken}", ["", *cells], table)


def _progress(snapshot: Snapshot, going: RunningProcess) -> str:
    """Last recorded step of a run, or the progress of its last evaluation."""
    line = newest_line(snapshot.folder(going.run))
    if line is None:
        return "starting"
    config = going.run.config
    text = f"replicate {line['replicate'] + 1}/{config['replicates']}, step {line['step']}"
    if line["step"] != config.get("steps"):
        return text
    printed = last_line(going.log)
    return f"{text}, {printed if printed.startswith('evaluating') else 'evaluating'}"


def _reason(code: int, log: Path) -> str:
    """Reason why a process ended if its record has none: a signal, or its last output."""
    if code == -signal.SIGKILL:
        return f"killed from outside (exit code {code}), possibly out of memory; repeat the study's command to resume it"
    return f"exit code {code}: {last_line(log)}"


def last_line(log: Path) -> str:
    """Last line printed by a process."""
    text = log.read_text(errors="replace") if log.is_file() else ""  # created when a job starts
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no output"


class StudyDisplay:
    """Progress of a study with a line per active run; plain lines without a terminal."""

    def __init__(self, snapshot: Snapshot, total: int, forecast: Forecast | None = None):
        self.snapshot = snapshot
        self.total = total
        self.forecast = forecast
        self.counts: Counter[str] = Counter()
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self.task = self.progress.add_task(f"study {snapshot.name}", total=total, left="")
        self.live = (
            Live(self.progress, console=out, refresh_per_second=2) if out.is_terminal else None
        )
        self.drawn = 0.0
        self.going: list[RunningProcess] = []  # active runs at the last check

    def poll(self, going: list[RunningProcess]) -> None:
        """Draw the active runs, twice a second."""
        self.going = list(going)
        if self.live is None or time.monotonic() - self.drawn < 0.5:
            return
        self.drawn = time.monotonic()
        self.progress.update(self.task, left=self._remaining())
        lines = [
            f"  {g.run.name}  {_progress(self.snapshot, g)}  {self.drawn - g.started:.0f} s"
            for g in self.going
        ]
        self.live.update(Group(self.progress, *(Text(line, style="dim") for line in lines)))

    def _remaining(self) -> str:
        """Text of the remaining time, if known."""
        seconds = self.forecast.remaining_seconds(self.going) if self.forecast else None
        return "" if seconds is None else f"about {format_seconds(seconds)} left"

    def report_end(self, job: RunningProcess, code: int, stopped: bool) -> None:
        """Print a line for a run that ended, with reason and log if it failed; ``stopped`` is True
        if the study was stopped.
        """
        run = job.run
        name = f"{run.name}  ({time.monotonic() - job.started:.0f} s)"
        now = state(self.snapshot, run)
        # possibly before it had a record or could write one
        if stopped and code in STOPPED_EXIT_CODES and now != "done":
            self.counts["interrupted"] += 1
            out.print(f"interrupted  {name}")
            return
        now = _end_state(now, code)
        self.counts[now] += 1
        self.progress.advance(self.task)
        if self.forecast:
            self.forecast.record_end(run)
        self.going = [other for other in self.going if other.run is not run]
        facts = self.snapshot.facts(run) or {}
        line = f"{now:12s} {name}"
        if now != "done":
            line += f"  {facts.get('error') or _reason(code, job.log)}  log: {job.log}"
        out.print(line, style="red" if now in FAILED else None)
        if self.live is None and (remaining := self._remaining()) and not self.progress.finished:
            out.print(f"             {self.counts.total()} of {self.total}, {remaining}")
