"""How a run is stopped on its way: after Ctrl-C and SIGTERM a step is finished and checkpointed
first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# environment variable with the only replicate of a run that a process is to compute
ALONE = "RUNNER_REPLICATE"


class RunInterruptedError(Exception):
    """SIGINT or SIGTERM: the run has checkpointed and can be resumed."""

    def __init__(self, signum: int, step: int | None):
        """``step`` is the one that it goes on from; None: nothing is left to do."""
        message = f"interrupted at step {step}; the same command goes on from there"
        super().__init__(
            message if step is not None else "interrupted as the run ended; its record is complete"
        )
        self.code = 128 + signum


class ReplicateDoneError(RunInterruptedError):
    """The one replicate that this process was asked for is done."""

    def __init__(self, replicate: int, replicates: int):
        Exception.__init__(
            self, f"replicate {replicate + 1} of {replicates} is done, the only one asked for"
        )
        self.code = 0


class RunPrunedError(Exception):
    """A sweep gave this run up after an evaluation."""


class ReceivedSignals(list[int]):
    """The signals noted so far; where nothing would be lost a signal need not wait."""

    step: int | None = None  # of the checkpoint with everything that could be lost, if there is one

    @contextmanager
    def interrupt_immediately(self, step: int) -> Iterator[None]:
        """Context in which a signal stops the run immediately.

        It is used for a long evaluation of the state in the checkpoint of ``step``.
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
    """The signals received, so that a step is finished and checkpointed before the run stops.

    A handler of Slurm's warning (SIGUSR2, in a job of submitit) is called afterwards: it puts
    the job back into the queue, where the run resumes from that checkpoint.
    """
    warning = signal.SIGUSR2 if callable(signal.getsignal(signal.SIGUSR2)) else None
    received = ReceivedSignals()

    def note(signum: int, _frame: Any) -> None:
        if received and signum == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signum)
        if received.step is not None:
            raise RunInterruptedError(signum, received.step)

    try:
        stopping = (signal.SIGINT, signal.SIGTERM, *((warning,) if warning else ()))
        before = {s: signal.signal(s, note) for s in stopping}
    except ValueError:  # not the main thread: the caller handles signals
        yield received
        return
    try:
        yield received
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
        if warning in received:
            signal.raise_signal(signal.SIGUSR2)
