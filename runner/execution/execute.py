"""One job from its record to its end: every replicate computed, kept and written to files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import torch

from components.errors import ConfigMismatchError, DataUnavailableError, NumericalError
from runner.compose.job import Job
from runner.errors import ConfigError, RunFailure
from runner.execution.course import RunContext
from runner.execution.divergence import check_scores
from runner.execution.memory import missing_float64_message, out_of_memory_message
from runner.execution.replicate import Replicate
from runner.execution.scores import Scores
from runner.execution.signals import (
    ReceivedSignals,
    ReplicateDoneError,
    RunInterruptedError,
    RunPrunedError,
    capture_signals,
)
from runner.record.facts import Facts, gather_scores
from runner.record.files import digest_files, sync_files, warn_damage
from runner.record.lease import LeaseLostError
from runner.record.machine import disk_failure, now
from runner.terminal import printer

# State of a run that an error ends; any other error: failed.
STATES: dict[type[BaseException], str] = {
    NumericalError: "diverged",
    RunPrunedError: "pruned",
    RunInterruptedError: "interrupted",
    KeyboardInterrupt: "interrupted",
}
REFUSALS = (ConfigMismatchError, ConfigError, DataUnavailableError)
EXPLAINED = (*STATES, ConfigError, DataUnavailableError, RunFailure)


def _describe_ending(error: BaseException) -> Facts:
    """Facts of a run that an error ends."""
    state = next((word for kind, word in STATES.items() if isinstance(error, kind)), "failed")
    if isinstance(error, KeyboardInterrupt):
        reason = "interrupted inside a step; the last checkpoint is kept"
    elif isinstance(error, EXPLAINED):
        reason = str(error)
    elif isinstance(error, Exception):
        reason = f"{type(error).__name__}: {error}"
    else:
        return {"state": state}
    return {"state": state, "error": reason}


class Run(RunContext):
    """One job on its way, from its record to its end."""

    def go(self, signals: bool = True) -> dict[str, list[float]]:
        """All replicates; the record's state says how it ended.  ``signals=False`` leaves them to
        the caller.

        Raises:
            Interrupted, Pruned, RunFailure, NumericalError: after the record and the last good checkpoint are safe.
        """
        with capture_signals() if signals else nullcontext(ReceivedSignals()) as received:
            result = self._run_all_replicates(received)
            if received:  # the signal came during the last writes: the caller of this run must stop
                raise RunInterruptedError(received[0], None)
        return result

    def _run_all_replicates(self, received: ReceivedSignals) -> dict[str, list[float]]:
        """``go``, while signals are noted."""
        record = self.record
        torch.set_num_threads(self.settings.threads)
        began = time.monotonic()
        before = record.facts["seconds"]
        record.save(state="running", error=None, vectorised=self.vectorised)
        self.is_handover_due = self.handover is not None
        ending: Facts = {"state": "failed"}
        try:
            for number in range(self.loops):
                is_written = record.facts.get("unwritten") != number
                is_done = str(number) in record.facts["finished"] and is_written
                if not is_done and self.alone in (None, number):
                    replicate = Replicate(self, number, received)
                    replicate.compute()
                    self._keep(replicate, before + time.monotonic() - began)
                self._stop_if_asked(received, number)
            if self.alone is not None:
                raise ReplicateDoneError(self.alone, self.loops)
            ending = self._finish()
        except BaseException as error:
            cause = self._find_cause(error)
            ending = _describe_ending(cause)
            ending["refused"] = isinstance(error, REFUSALS) and self.is_removable
            if cause is error:
                raise
            raise cause from None
        finally:
            self.close_display()
            self._end(ending, before + time.monotonic() - began)
        result: dict[str, list[float]] = record.facts["result"]
        return result

    def _keep(self, replicate: Replicate, seconds: float) -> None:
        """Save scores and checks to disk before any figure is drawn.

        ``unwritten`` names the replicate with missing files: a run that continues makes them
        again from the last checkpoint.
        """
        facts = self.record.facts
        number = replicate.rng.replicate
        facts["finished"][str(number)] = replicate.scores
        facts.setdefault("checks", {})[str(number)] = replicate.checks
        self.record.sync()  # a replicate is finished only if its lines survive a power cut
        self.record.save(seconds=seconds, unwritten=number)
        with self.usage.phase("files"):
            replicate.write()
            sync_files(self.record.folder, facts.get("artefacts", []))
        del facts["unwritten"]
        self.usage.passes += 1
        if left_out := self.announcements.left_out:
            facts["left_out"] = sorted({*facts.get("left_out", ()), *left_out})
        self.record.save()

    def _stop_if_asked(self, received: ReceivedSignals, replicate: int) -> None:
        """Stop before the next replicate after a signal that came while one was written, or if the
        run was given up.

        Raises:
            RunInterruptedError, RunPrunedError: it stops.
        """
        if replicate == self.loops - 1:
            return
        if received:
            raise RunInterruptedError(received[0], 0)
        if self.watch.given_up is not None:
            raise self.watch.given_up

    def _finish(self) -> Facts:
        """The last facts of a run with all replicates.

        Raises:
            NumericalError: its scores are not finite.
        """
        record = self.record
        record.facts["result"] = gather_scores(record.facts["finished"], self.vectorised)
        check_scores(record.facts, self.job.inference)
        record.sync()
        files = digest_files(record.folder, record.facts.get("artefacts", []))
        return {"state": "done", "files": files}

    def _find_cause(self, error: BaseException) -> BaseException:
        """The error that is reported in the place of one that ended the run."""
        if isinstance(error, OSError):
            return disk_failure(error, self.record.folder)
        if isinstance(error, ConfigMismatchError):
            return ConfigError(str(error))
        if isinstance(error, EXPLAINED) or not isinstance(error, Exception):
            return error
        message = out_of_memory_message(error)
        message = message or missing_float64_message(error, self.settings.device)
        return RunFailure(message) if message else error

    def _end(self, ending: Facts, seconds: float) -> None:
        try:
            if ending.pop("refused", False):
                self.record.remove()
                return
            self.begin_handover()
            self.record.sync()
            self.record.save(**ending, ended=now(), seconds=seconds, usage=self.usage.facts())
            if self.handover:
                self.handover.end()
        except OSError as error:  # a full disk must not hide what happened before
            printer.complain(str(disk_failure(error, self.record.folder)))
        except LeaseLostError as error:  # another process owns the files there
            if ending.get("error") != str(error):
                raise
        finally:
            self.record.close()


def run(
    job: Job, on_evaluation: Callable[[int, Scores], None] | None = None
) -> tuple[Run, dict[str, list[float]]]:
    """Runs a job, or, when its record says it is done, reads its result."""
    active_run = Run(job, on_evaluation)
    if active_run.was_done:
        active_run.record.close()
        warn_damage(job.folder, active_run.record.facts)
        return active_run, active_run.record.facts["result"]
    return active_run, active_run.go()


def rehearse(job: Job, start_limits: Mapping[str, float] | None = None) -> Path:
    """Folder of a record with the lines of a job's first replicate; no artefact is written.

    ``start_limits``: of the costs before the first step."""
    active_run = Run(job)
    try:
        replicate = Replicate(active_run, 0, ReceivedSignals())
        replicate.meter.start_limits = start_limits or {}
        replicate.compute()
        active_run.record.flush()
    finally:
        active_run.close_display()
        active_run.record.close()
    return active_run.record.folder
