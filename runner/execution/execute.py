"""Execution of a job: compute every replicate, save it and write its files."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
from runner.execution.scores import OnScores
from runner.execution.signals import (
    ReceivedSignals,
    ReplicateDoneError,
    RunInterruptedError,
    RunPrunedError,
    capture_signals,
)
from runner.record.facts import Facts, ScoreLists, gather_scores
from runner.record.files import digest_files, sync_files, warn_damage
from runner.record.lease import LeaseLostError
from runner.record.machine import disk_failure, now
from runner.terminal import printer

# state of a run by the error that ended it; "failed" for other errors
STATES: dict[type[BaseException], str] = {
    NumericalError: "diverged",
    RunPrunedError: "pruned",
    RunInterruptedError: "interrupted",
    KeyboardInterrupt: "interrupted",
}
REFUSALS = (ConfigMismatchError, ConfigError, DataUnavailableError)
EXPLAINED = (*STATES, ConfigError, DataUnavailableError, RunFailure)


def _describe_ending(error: BaseException) -> Facts:
    """Facts of a run that ended with an error."""
    state = next((word for kind, word in STATES.items() if isinstance(error, kind)), "failed")
    if isinstance(error, KeyboardInterrupt):
        reason = "interrupted inside a step; the last checkpoint is saved"
    elif isinstance(error, EXPLAINED):
        reason = str(error)
    elif isinstance(error, Exception):
        reason = f"{type(error).__name__}: {error}"
    else:
        return {"state": state}
    return {"state": state, "error": reason}


class Run(RunContext):
    """Execution of one job."""

    def go(self, signals: bool = True) -> ScoreLists:
        """Run all replicates and store the final state in the record.

        Args:
            signals: handle signals here; False leaves them to the caller.

        Raises:
            RunInterruptedError, RunPrunedError, RunFailure, NumericalError: after the record and
                the last good checkpoint are saved.
        """
        with capture_signals() if signals else nullcontext(ReceivedSignals()) as received:
            result = self._run_all_replicates(received)
            if received:  # a signal during the last writes must stop the caller
                raise RunInterruptedError(received[0], None)
        return result

    def _run_all_replicates(self, received: ReceivedSignals) -> ScoreLists:
        """``go`` with captured signals."""
        record = self.record
        torch.set_num_threads(self.job.settings.threads)
        began = time.monotonic()
        earlier_seconds = record.facts["seconds"]
        record.save(state="running", error=None, vectorised=self.job.is_vectorised)
        self.is_handover_due = self.handover is not None
        ending: Facts = {"state": "failed"}
        try:
            for number in range(self.job.loops):
                is_written = record.facts.get("unwritten") != number
                is_done = str(number) in record.facts["finished"] and is_written
                if not is_done and self.alone in (None, number):
                    replicate = Replicate(self, number, received)
                    replicate.compute()
                    self._keep(replicate, earlier_seconds + time.monotonic() - began)
                if number < self.job.loops - 1:  # a signal during writing, or pruning
                    self.stop_if_asked(received, 0)
            if self.alone is not None:
                raise ReplicateDoneError(self.alone, self.job.loops)
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
            self._end(ending, earlier_seconds + time.monotonic() - began)
        result: ScoreLists = record.facts["result"]
        return result

    def _keep(self, replicate: Replicate, seconds: float) -> None:
        """Save scores and checks to disk before drawing figures.

        ``unwritten`` is the replicate with missing files, which a resumed run creates from the
        last checkpoint.
        """
        facts = self.record.facts
        number = replicate.rng.replicate
        facts["finished"][str(number)] = replicate.scores
        facts.setdefault("checks", {})[str(number)] = replicate.checks
        self.record.sync()  # a replicate is finished only when its lines are on disk
        self.record.save(seconds=seconds, unwritten=number)
        with self.usage.phase("files"):
            replicate.write()
            sync_files(self.record.folder, facts.get("artefacts", []))
        del facts["unwritten"]
        self.usage.passes += 1
        if left_out := self.announcements.left_out:
            facts["left_out"] = sorted({*facts.get("left_out", ()), *left_out})
        self.record.save()

    def _finish(self) -> Facts:
        """Write the final facts after all replicates.

        Raises:
            NumericalError: scores are not finite.
        """
        record = self.record
        record.facts["result"] = gather_scores(record.facts["finished"], self.job.is_vectorised)
        check_scores(record.facts, self.job.inference)
        record.sync()
        files = digest_files(record.folder, record.facts.get("artefacts", []))
        return {"state": "done", "files": files}

    def _find_cause(self, error: BaseException) -> BaseException:
        """Replace the error that ended the run by its cause, if known."""
        if isinstance(error, OSError):
            return disk_failure(error, self.record.folder)
        if isinstance(error, ConfigMismatchError):
            return ConfigError(str(error))
        if isinstance(error, EXPLAINED) or not isinstance(error, Exception):
            return error
        message = out_of_memory_message(error)
        message = message or missing_float64_message(error, self.job.settings.device)
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
        except OSError as error:  # a full disk must not hide the original error
            printer.complain(str(disk_failure(error, self.record.folder)))
        except LeaseLostError as error:  # another process owns the record
            if ending.get("error") != str(error):
                raise
        finally:
            self.record.close()


def run(job: Job, on_evaluation: OnScores = None) -> tuple[Run, ScoreLists]:
    """Run a job, or read its result if its record is finished."""
    active_run = Run(job, on_evaluation)
    if active_run.was_done:
        active_run.record.close()
        warn_damage(job.folder, active_run.record.facts)
        return active_run, active_run.record.facts["result"]
    return active_run, active_run.go()


def rehearse(job: Job, start_limits: Mapping[str, float] | None) -> Path:
    """Train the first replicate of a job without writing artefacts; return the record's folder.

    ``start_limits`` are the limits of the costs before the first step."""
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
