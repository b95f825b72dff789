"""The steps of a run as they go: a bar with live metrics on a terminal (rich), otherwise a line for
each evaluation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner.execution.scores import Scores, means
from runner.terminal import printer

if TYPE_CHECKING:
    from rich.progress import Progress

PROGRESS_LINE_SECONDS = 30.0  # seconds between the lines of a long evaluation
REFRESH_SECONDS = 0.25  # seconds between two drawings of the bar
NO_FIELDS: dict[str, Any] = {"rate": "", "until": None, "metrics": ()}  # of the bar


class Live:
    """Progress of one run's steps over all its looped replicates."""

    def __init__(self, total: int, replicates: int):
        self.total = total
        self.replicates = replicates
        self.started = time.monotonic()
        self.printed = self.started  # time of the last line of progress
        self.parts = 0  # of the present phase of the last evaluation; 0: it has not begun
        self.first: tuple[int, float] | None = None  # first step or part of the phase, and its time
        self.drawn = 0.0
        self.progress: Progress | None = None
        if printer.out.is_terminal and not printer.out.quiet:
            from rich.progress import Progress

            from runner.execution.screen.columns import columns

            self.progress = Progress(
                *columns(printer.out.width),
                console=printer.out,
                refresh_per_second=1 / REFRESH_SECONDS,
                transient=True,
            )
            self.task = self.progress.add_task("training", total=total, **NO_FIELDS)
            self.progress.start()

    def update(self, step: int, replicate: int, info: Scores) -> None:
        """Show a step's values next to the progress bar, if there is a bar."""
        if self.progress is None:
            return
        name = f"replicate {replicate + 1}/{self.replicates}" if self.replicates > 1 else "training"
        metrics = [f"{k} {printer.number(v)}" for k, v in means(info).items()]
        self.progress.update(self.task, description=name, metrics=metrics)
        self._move(step, self.total)

    def advance(self, step: int) -> None:
        """Move the bar to a step without recorded values, if the bar is due to be drawn."""
        if self.progress is not None and time.monotonic() - self.drawn > REFRESH_SECONDS:
            self._move(step, self.total)

    def _move(self, done: int, total: int) -> None:
        """Move the bar, with the mean rate of the present phase and the time that is left."""
        from runner.execution.screen.columns import format_rate

        assert self.progress is not None
        now = time.monotonic()
        self.drawn = now
        self.first = self.first or (done, now)
        count = done - self.first[0]
        seconds = now - self.first[1]
        rate = count / seconds if count > 0 and seconds > 0 else None
        self.progress.update(
            self.task,
            completed=done,
            total=total,
            rate="" if rate is None else format_rate(rate),
            until=None if rate is None else now + (total - done) / rate,
        )

    def restart(self, replicate: int) -> None:
        """Begin the steps of another replicate."""
        self.parts = 0
        self.first = None
        if self.progress is not None:
            self.progress.reset(
                self.task,
                total=self.total,
                description=f"replicate {replicate + 1}/{self.replicates}",
                **NO_FIELDS,
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
        now = time.monotonic()
        self.printed = now
        printer.out.print(
            f"{replicate_text}step {step}/{self.total}  {score_text}  ({now - self.started:.1f} s)"
        )

    def evaluating(self, what: str, done: int, of: int) -> None:
        """Show the progress of the last evaluation and of the figures after it.

        The bar counts the parts; without a terminal, a line is printed every half a minute.
        """
        now = time.monotonic()
        if self.progress is not None:
            if self.parts != of or done == 0:
                self.first = None
                self.progress.reset(self.task, total=of, **NO_FIELDS)
            self.progress.update(self.task, description=what)
            self._move(done, of)
        elif now - self.printed > PROGRESS_LINE_SECONDS:
            self.printed = now
            printer.out.print(f"evaluating: {what}, {done}/{of} ({now - self.started:.0f} s)")
        self.parts = of

    def stop(self) -> None:
        if self.progress is not None:
            self.progress.stop()
