"""Signals of a run: captured signals and later handlers."""

from __future__ import annotations

import signal

import pytest

from runner.execution.signals import RunInterruptedError, capture_signals


def test_slurm_warning_is_handled_after_the_checkpoint():
    """Submitit's handler requeues the job after the step is finished."""
    calls = []

    def run() -> None:
        with capture_signals() as received:
            signal.raise_signal(signal.SIGUSR2)
            calls.append("checkpoint")
            raise RunInterruptedError(received[0], 3)

    previous = signal.signal(signal.SIGUSR2, lambda *_: calls.append("requeued"))
    try:
        with pytest.raises(RunInterruptedError):
            run()
    finally:
        signal.signal(signal.SIGUSR2, previous)
    assert calls == ["checkpoint", "requeued"]


def test_slurm_warning_is_ignored_outside_of_slurm():
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
    with capture_signals():
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
