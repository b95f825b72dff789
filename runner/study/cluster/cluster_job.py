"""A run of a study, or one replicate of it, as a job of a cluster's engine.

It is a process that is stopped when the job is.

A job that is asked to end (its time is up, its node is needed) stops its process, which
finishes a step and writes a checkpoint, and is submitted again; a job on a node that
died is started elsewhere.  Either continues from the checkpoint.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.record import lease
from runner.record.facts import read
from runner.record.parts import replicate_record_folder
from runner.study.job_pool import GRACE_SECONDS, STOPPED_EXIT_CODES, THREAD_VARIABLES
from runner.study.snapshot import FrozenRun, Snapshot, location

POLL_SECONDS = 0.2  # seconds between checks of the process
# seconds that a job killed from outside waits for the engine to kill or requeue it: more than
# Slurm's KillWait (30 s), so that a job that it puts back into its queue leaves no result
REQUEUE_SECONDS = 90.0
SLURM_WARNING = signal.SIGUSR2  # submitit's: sbatch --signal=USR2@signal_delay_s
PASSED_ENV_PREFIXES = (
    "RUNNER_",
    "MLFLOW_",
    "OPTUNA_",
)  # variables of the study's process that a job gets, with any engine


def _facts(folder: str) -> dict[str, Any]:
    return read(Path(folder)) or {}


@dataclass
class ClusterJob:
    """Submitted job; calling it runs it, and returns the exit code."""

    snapshot_file: str
    name: str
    key: str  # signature, or signature-replicate
    run_folder: str  # of the run's record
    folder: str  # of this job: the run's folder, or the replicate's
    replicate: int | None
    parts: list[str]  # folders of the records of all replicates, where each is a job
    log: str
    environment: dict[str, str] = field(default_factory=dict)
    process: Any = None
    told: bool = False  # to stop
    grace: float = GRACE_SECONDS  # that its process gets to stop

    def __call__(self) -> int:
        if _facts(self.run_folder).get("state") == "done":  # while this job was in the queue
            return 0
        code = self._run(self.replicate, self.folder)
        if code == 0 and self.parts and all(_facts(part).get("finished") for part in self.parts):
            return self._run(None, self.run_folder)  # the last one gathers
        return code

    def _run(self, replicate: int | None, folder: str) -> int:
        path = Path(folder) / lease.NAME
        one = [] if replicate is None else ["--replicate", str(replicate)]
        command = [
            sys.executable,
            "-P",
            "-m",
            "runner.study.one_run",
            self.snapshot_file,
            self.name,
            *one,
            "--watched",
        ]
        Path(self.log).parent.mkdir(parents=True, exist_ok=True)
        while True:
            # By an earlier job that has not noticed yet that it is over, or by a user who started
            # it by hand.
            while lease.is_leased(path):
                time.sleep(POLL_SECONDS)
            process = self._start(command)
            try:
                while (code := process.poll()) is None:
                    time.sleep(POLL_SECONDS)
            finally:
                if process.stdin is not None:
                    process.stdin.close()  # stops it, if it goes on
            if code == 2 and lease.is_leased(path):
                continue  # another process was slightly faster
            if (
                code in STOPPED_EXIT_CODES
                and not self.told
                and _facts(folder).get("state") != "done"
            ):
                # a cluster that wants its node kills the process too: the job is about to be
                # requeued
                time.sleep(REQUEUE_SECONDS)
            return int(code)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Process of the run, in which Slurm's warning stays blocked.

        Slurm sends it to every process of a step.  This one answers it for both: it stops the
        other by SIGTERM, and a warning that comes now waits until it can.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {SLURM_WARNING})
        try:
            with open(self.log, "ab") as log:
                self.process = process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **self.environment},
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process

    def stop(self) -> None:
        """Lets the process finish its step and write a checkpoint; called inside a signal handler,
        where ``poll`` and ``wait`` may be under way below."""
        self.told = True
        if self.process is None:
            return
        self.process.terminate()
        deadline = time.monotonic() + self.grace
        try:
            while time.monotonic() < deadline:
                if (
                    os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                    is not None
                ):
                    return
                time.sleep(POLL_SECONDS)
        except ChildProcessError:
            return

    def checkpoint(self) -> Any:
        """Job that submitit submits again after asking this one to end."""
        from submitit.helpers import DelayedSubmission

        self.stop()
        self.process = None
        self.told = False
        return DelayedSubmission(self)


def create_cluster_jobs(snapshot: Snapshot, run: FrozenRun, by_replicate: bool) -> list[ClusterJob]:
    """The jobs of a run: one, or one for each replicate where these come one after the other."""
    folder = snapshot.folder(run)
    replicates = int(run.config["replicates"])
    environment = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ENV_PREFIXES)}
    environment |= {
        **dict.fromkeys(THREAD_VARIABLES, str(run.config.get("threads", 1))),
        "RUNNER_STUDY": snapshot.name,
    }
    file = location(snapshot.name, snapshot.output_dir)

    def create(
        key: str, job_folder: Path | str, replicate: int | None = None, parts: Sequence[str] = ()
    ) -> ClusterJob:
        return ClusterJob(
            snapshot_file=str(file),
            name=run.name,
            key=key,
            run_folder=str(folder),
            folder=str(job_folder),
            replicate=replicate,
            parts=list(parts),
            log=str(file.parent / "logs" / f"{key}.log"),
            environment=environment,
        )

    if not by_replicate or replicates == 1:
        return [create(run.signature, folder)]
    parts = [str(replicate_record_folder(folder, r)) for r in range(replicates)]
    return [create(f"{run.signature}-{r}", part, r, parts) for r, part in enumerate(parts)]
