"""Interruption of a run: after Ctrl-C or SIGTERM the current step is finished and checkpointed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from runner.terminal.handlers import handle_signals

# environment variable with the number of the only replicate that a process computes
ALONE = "RUNNER_REPLICATE"


class RunInterruptedError(Exception):
    """SIGINT or SIGTERM: the run has checkpointed and can be resumed."""

    def __init__(self, signum: int, step: int | None):
        """``step`` is the step to resume from, or None if the run is complete."""
        message = f"interrupted at step {step}; the same command resumes the run"
        super().__init__(
            message
            if step is not None
            else "interrupted at the end of the run; its record is complete"
        )
        self.code = 128 + signum


class ReplicateDoneError(RunInterruptedError):
    """The only replicate of this process is done."""

    def __init__(self, replicate: int, replicates: int):
        Exception.__init__(
            self, f"replicate {replicate + 1} of {replicates}, the only one requested, is done"
        )
        self.code = 0


class RunPrunedError(Exception):
    """A sweep pruned this run after an evaluation."""


class ReceivedSignals(list[int]):
    """Signals received so far; inside ``interrupt_immediately`` a signal stops the run."""

    step: int | None = None  # step of a checkpoint without later progress, if there is one

    @contextmanager
    def interrupt_immediately(self, step: int) -> Iterator[None]:
        """Context in which a signal stops the run immediately.

        It is used during a long evaluation of the state in the checkpoint of ``step``.
        """
        if self:
            raise RunInterruptedError(self[0], step)
        self.step = step
        try:
            yield
        finally:
            self.step = None


@contextmanager
def capture_signals() -> Iterator[ReceivedSignals]:
    """Context that captures signals, so that a step is finished and checkpointed before the run
    stops.

    The handler of Slurm's warning (SIGUSR2, in a job of submitit) is called afterwards: it requeues
    the job, which resumes from that checkpoint.
    """
    warning = signal.SIGUSR2 if callable(signal.getsignal(signal.SIGUSR2)) else None
    received = ReceivedSignals()

    def note(signum: int, _frame: Any) -> None:
        if received and signum == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signum)
        if received.step is not None:
            raise RunInterruptedError(signum, received.step)

    stopping = [signal.SIGINT, signal.SIGTERM, *([warning] if warning else [])]
    if current_thread() is not main_thread():  # the caller handles signals
        stopping = []
    try:
        with handle_signals(note, *stopping):
            yield received
    finally:
        if warning in received:
            signal.raise_signal(signal.SIGUSR2)
