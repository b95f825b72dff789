"""Shared parts of a run's replicates, and a replicate in progress."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from components.contracts.roles import Problem
from runner.compose.job import Job
from runner.execution import replicates
from runner.execution.costs import CostMeter
from runner.execution.rng import Streams
from runner.execution.scores import OnScores, Scores, means
from runner.execution.screen.announcements import Announcements
from runner.execution.screen.progress import Live
from runner.execution.signals import ALONE, ReceivedSignals, RunInterruptedError
from runner.execution.storage.blocks import RowBlocks
from runner.execution.watch import Watch
from runner.record.record import Record
from runner.record.usage import UsageMeter
from runner.terminal import printer
from runner.tracking.handover import create_handover


class RunContext:
    """A run's record, upload to MLflow and display."""

    def __init__(
        self,
        job: Job,
        on_evaluation: OnScores = None,
        command: Sequence[str] | None = None,
    ):
        """See ``Record.open`` for ``command``."""
        self.job = job
        self.watch = Watch(job, on_evaluation)
        self.usage = UsageMeter()
        self.record = Record.open(job, command)
        self.usage.before = self.record.facts.get("usage", {})
        if self.record.note:
            printer.announce("Damaged record", self.record.note)
        if note := replicates.take_over(self.record, job):
            printer.out.print(note)
        number = os.environ.get(ALONE)
        self.alone = int(number) if number else None  # the only replicate to compute
        self.handover = create_handover(job.settings, self.record.folder)
        self.announcements = Announcements()
        self.live: Live | None = None  # display of the whole run
        self.was_done = self.record.state == "done"
        # a refused run leaves no record, except in a study, which lists the error
        self.is_removable = self.record.is_new and self.record.facts["study"] is None
        self.is_handover_due = False
        # the same data from changed files: stored for the next run
        if self.record.facts.get("data_state") != job.data_state:
            self.record.save(data_state=job.data_state)

    def begin_handover(self) -> None:
        """Announce the run to MLflow, once."""
        if self.handover and self.is_handover_due:
            self.is_handover_due = False
            self.handover.begin()
            if (trouble := self.handover.trouble) is not None:
                printer.out.print(
                    f"MLflow   {trouble}; the local record is not affected", style="yellow"
                )

    def stop_if_asked(self, received: ReceivedSignals, step: int) -> None:
        """Stop after a signal or pruning; the step has been saved.

        Raises:
            RunInterruptedError: after a signal.
            RunPrunedError: a sweep pruned the run.
        """
        if received:
            raise RunInterruptedError(received[0], step)
        if self.watch.given_up is not None:
            raise self.watch.given_up

    def close_display(self) -> None:
        """Stop the display, if any."""
        if self.live is not None:
            self.live.stop()


class Course:
    """One replicate in progress, or all of them if they are computed together."""

    problem: Problem
    model: Any
    total: int  # steps
    live: Live

    def __init__(self, run: RunContext, number: int, received: ReceivedSignals):
        self.run = run
        self.job = run.job
        self.record = run.record
        self.usage = run.usage
        self.received = received
        self.rng = Streams(self.job.settings.seed, number, self.job.settings.device)
        self.meter = CostMeter(self.job.budget, self.job.n_together)
        self.blocks = RowBlocks()  # draws on disk
        self.before = 0.0  # seconds before the last interruption
        self.began = time.monotonic()

    @property
    def stopping(self) -> bool:
        """True after a signal or if the run was pruned."""
        return bool(self.received) or self.run.watch.given_up is not None

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    def report_evaluation(
        self,
        step: int,
        phase: str,
        scores: Scores,
        watched: Scores | None = None,
        costs: Scores | None = None,
    ) -> None:
        """Record and show scores, with the costs so far and the costs of an attack.

        The scores, or ``watched``, are also passed to the pruning callback.
        """
        number = self.rng.replicate
        metrics = scores | self.meter.metrics() | (costs or {})
        self.record.line(step, number, self.seconds, phase, metrics)
        self.record.flush()
        self.live.show_evaluation(step, number, means(scores))
        finished = self.record.facts["finished"]
        self.run.watch.tell(step, self.total, number, watched or scores, finished)
