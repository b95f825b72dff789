"""Progress of a run: a bar with live metrics on a terminal (rich), otherwise a line per
evaluation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from runner.execution.scores import Scores, means
from runner.terminal import printer

if TYPE_CHECKING:
    from rich.progress import Progress

PROGRESS_LINE_SECONDS = 30.0  # seconds between the lines of a long evaluation
REFRESH_SECONDS = 0.25  # seconds between updates of the bar
RATE_SECONDS = 3600.0  # seconds over which rich averages the rate


class Live:
    """Progress of a run's steps over its sequential replicates."""

    def __init__(self, total: int, replicates: int):
        self.total = total
        self.replicates = replicates
        self.started = time.monotonic()
        self.printed = self.started  # time of the last line of progress
        self.parts = 0  # number of parts of the current phase of the last evaluation; 0: not begun
        self.drawn = 0.0
        self.progress: Progress | None = None
        if printer.out.is_terminal and not printer.out.quiet:
            from rich.progress import Progress

            from runner.execution.screen.columns import columns

            self.progress = Progress(
                *columns(printer.out.width),
                console=printer.out,
                refresh_per_second=1 / REFRESH_SECONDS,
                speed_estimate_period=RATE_SECONDS,
                transient=True,
            )
            self.task = self.progress.add_task("training", total=total, metrics="")
            self.progress.start()

    def _name(self, replicate: int) -> str:
        return f"replicate {replicate + 1}/{self.replicates}" if self.replicates > 1 else ""

    def update(self, step: int, replicate: int, info: Scores) -> None:
        """Show a step's values next to the progress bar, if any."""
        if self.progress is None:
            return
        name = self._name(replicate) or "training"
        metrics = "  ".join(f"{k} {printer.number(v)}" for k, v in means(info).items())
        self.progress.update(self.task, description=name, metrics=metrics, completed=step)

    def advance(self, step: int) -> None:
        """Advance the bar to a step without recorded values, at most every ``REFRESH_SECONDS``."""
        now = time.monotonic()
        if self.progress is not None and now - self.drawn > REFRESH_SECONDS:
            self.drawn = now
            self.progress.update(self.task, completed=step)

    def restart(self, replicate: int) -> None:
        """Begin the steps of the next replicate."""
        self.parts = 0
        if self.progress is not None:
            self.progress.reset(
                self.task,
                total=self.total,
                description=self._name(replicate),
                metrics="",
            )

    def show_evaluation(self, step: int, replicate: int, scores: Mapping[str, float]) -> None:
        """Print a line for an evaluation; with several posteriors, the first score of each."""
        name = self._name(replicate)
        first = next(iter(scores), "").partition("/")[0]
        headline = {k: v for k, v in scores.items() if "/" not in k} or {
            k: v for k, v in scores.items() if k.partition("/")[0] == first
        }
        score_text = "  ".join(f"{k} {printer.number(v)}" for k, v in headline.items())
        now = time.monotonic()
        self.printed = now
        printer.out.print(
            f"{name}{'  ' * bool(name)}step {step}/{self.total}  {score_text}  ({now - self.started:.1f} s)"
        )

    def evaluating(self, what: str, done: int, of: int) -> None:
        """Show the progress of the last evaluation and of the figures after it.

        The bar counts the parts; without a terminal a line is printed every 30 seconds.
        """
        now = time.monotonic()
        if self.progress is not None:
            if self.parts != of or done == 0:
                self.progress.reset(self.task, total=of, metrics="")
            self.progress.update(self.task, description=what, completed=done)
        elif now - self.printed > PROGRESS_LINE_SECONDS:
            self.printed = now
            printer.out.print(f"evaluating: {what}, {done}/{of} ({now - self.started:.0f} s)")
        self.parts = of

    def stop(self) -> None:
        if self.progress is not None:
            self.progress.stop()
