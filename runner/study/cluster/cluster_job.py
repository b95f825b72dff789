"""A run of a study as a job of a cluster's engine.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.record import lease
from runner.record.facts import read
from runner.study.executor import GRACE_SECONDS, log_file
from runner.study.job_pool import STOPPED_EXIT_CODES, run_variables
from runner.study.snapshot import FrozenRun, Snapshot

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


@dataclass
class ClusterJob:
    """Submitted job; calling it runs it, and returns the exit code."""

    snapshot_file: str
    name: str
    folder: str  # of the run's record
    log: str
    environment: dict[str, str] = field(default_factory=dict)
    process: Any = None
    told: bool = False  # to stop
    grace: float = GRACE_SECONDS  # that its process gets to stop

    def __call__(self) -> int:
        if self._is_done():  # while this job was in the queue
            return 0
        path = Path(self.folder) / lease.NAME
        module = "runner.study.one_run"
        words = [sys.executable, "-P", "-m", module, self.snapshot_file, self.name, "--watched"]
        Path(self.log).parent.mkdir(parents=True, exist_ok=True)
        while True:
            # By an earlier job that has not noticed yet that it is over, or by a user who started
            # it by hand.
            while lease.is_leased(path):
                time.sleep(POLL_SECONDS)
            process = self._start(words)
            try:
                while (code := process.poll()) is None:
                    time.sleep(POLL_SECONDS)
            finally:
                if process.stdin is not None:
                    process.stdin.close()  # stops it, if it goes on
            if code == 2 and lease.is_leased(path):
                continue  # another process was slightly faster
            if code in STOPPED_EXIT_CODES and not self.told and not self._is_done():
                # a cluster that wants its node kills the process too: the job is about to be
                # requeued
                time.sleep(REQUEUE_SECONDS)
            return int(code)

    def _is_done(self) -> bool:
        return (read(Path(self.folder)) or {}).get("state") == "done"

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


def create_cluster_job(snapshot: Snapshot, run: FrozenRun) -> ClusterJob:
    """The job of a run."""
    environment = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ENV_PREFIXES)}
    environment |= run_variables(snapshot, run)
    folder = str(snapshot.folder(run))
    return ClusterJob(
        str(snapshot.file), run.name, folder, str(log_file(snapshot, run)), environment
    )
