"""The steps of a run as they go: a bar with live metrics on a terminal (rich), otherwise a line for
each evaluation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from runner.execution.scores import Scores, means
from runner.terminal import printer

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN = 5  # live metrics next to the bar
PROGRESS_LINE_SECONDS = 30.0  # seconds between the lines of a long evaluation


class Live:
    """Progress of one run's steps over all its looped replicates."""

    def __init__(self, total: int, replicates: int):
        self.total = total
        self.replicates = replicates
        self.started = time.monotonic()
        self.assessed = False
        self.said = 0.0  # assessed: the last evaluation has begun; said: time of its line
        self.progress: Progress | None = None
        if printer.out.is_terminal and not printer.out.quiet:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self.progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[live]}", style="dim", markup=False),
                console=printer.out,
                refresh_per_second=4,
            )
            self.task = self.progress.add_task("training", total=total, rate="", live="")
            self.progress.start()

    def update(self, step: int, replicate: int, info: Scores) -> None:
        """Show a step's values next to the progress bar, if there is a bar."""
        if self.progress is None:
            return
        name = f"replicate {replicate + 1}/{self.replicates}" if self.replicates > 1 else "training"
        task = self.progress.tasks[self.task]
        live = "  ".join(f"{k} {printer.number(v)}" for k, v in list(means(info).items())[:SHOWN])
        rate = (
            f"{task.speed:.0f}/s"
            if task.speed and task.speed >= 1
            else (f"{1 / task.speed:.1f} s each" if task.speed else "")
        )
        self.progress.update(self.task, completed=step, description=name, live=live, rate=rate)

    def restart(self, replicate: int) -> None:
        self.assessed = False
        if self.progress is not None:
            self.progress.reset(
                self.task,
                total=self.total,
                description=f"replicate {replicate + 1}/{self.replicates}",
            )

    def show_evaluation(self, step: int, replicate: int, scores: Mapping[str, float]) -> None:
        """One line per evaluation, also when not on a terminal: of several posteriors the first
        score of each."""
        replicate_text = (
            f"replicate {replicate + 1}/{self.replicates}  " if self.replicates > 1 else ""
        )
        first = next(iter(scores), "").partition("/")[0]
        headline = {k: v for k, v in scores.items() if "/" not in k} or {
            k: v for k, v in scores.items() if k.partition("/")[0] == first
        }
        score_text = "  ".join(f"{k} {printer.number(v)}" for k, v in headline.items())
        seconds = time.monotonic() - self.started
        printer.out.print(
            f"{replicate_text}step {step}/{self.total}  {score_text}  ({seconds:.1f} s)"
        )

    def evaluating(self, what: str, done: int, of: int) -> None:
        """Show the progress of the last evaluation.

        The bar counts its parts; without a terminal, a line is printed every half a minute.
        """
        now = time.monotonic()
        if self.progress is not None:
            if not self.assessed:
                self.progress.reset(self.task, total=of, description=what, rate="", live="")
            self.progress.update(
                self.task, description=what, completed=done, total=of, rate="", live=""
            )
        elif self.assessed and now - self.said > PROGRESS_LINE_SECONDS:
            printer.out.print(f"evaluating: {what}, {done}/{of} ({now - self.started:.0f} s)")
        if not self.assessed or now - self.said > PROGRESS_LINE_SECONDS:
            self.said = now
        self.assessed = True

    def stop(self) -> None:
        if self.progress is not None:
            self.progress.stop()
