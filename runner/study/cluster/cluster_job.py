"""A run of a study as a job of a cluster engine, in a process that is stopped with the job.

When a job must end (timeout or preemption), it stops its process, which finishes a step and writes
a checkpoint, and the job is submitted again; a job on a failed node is restarted elsewhere.
Both resume from the checkpoint.
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

POLL_SECONDS = 0.2  # interval between checks of the process
# seconds for which a job killed from outside waits to be killed or requeued by the engine: longer
# than Slurm's KillWait (30 s), so that a requeued job leaves no result
REQUEUE_SECONDS = 90.0
SLURM_WARNING = signal.SIGUSR2  # set by submitit: sbatch --signal=USR2@signal_delay_s
# environment variables of the study's process that are passed to jobs of all engines
PASSED_ENV_PREFIXES = ("RUNNER_", "MLFLOW_", "OPTUNA_")


@dataclass
class ClusterJob:
    """Submitted job; calling it executes the run and returns the exit code."""

    snapshot_file: str
    name: str
    folder: str  # folder of the run's record
    log: str
    environment: dict[str, str] = field(default_factory=dict)
    process: Any = None
    stop_requested: bool = False  # True after a request to stop
    grace: float = GRACE_SECONDS  # time limit for its process to stop

    def __call__(self) -> int:
        if self._is_done():  # finished while this job was in the queue
            return 0
        path = Path(self.folder) / lease.NAME
        module = "runner.study.one_run"
        words = [sys.executable, "-P", "-m", module, self.snapshot_file, self.name, "--watched"]
        Path(self.log).parent.mkdir(parents=True, exist_ok=True)
        while True:
            # leased by an earlier job that has not ended yet, or by a user who started the run
            while lease.is_leased(path):
                time.sleep(POLL_SECONDS)
            process = self._start(words)
            try:
                while (code := process.poll()) is None:
                    time.sleep(POLL_SECONDS)
            finally:
                if process.stdin is not None:
                    process.stdin.close()  # stops it if it continues
            if code == 2 and lease.is_leased(path):
                continue  # another process acquired the lease first
            if code in STOPPED_EXIT_CODES and not self.stop_requested and not self._is_done():
                # a cluster that wants its node kills the process too: the job is about to be
                # requeued
                time.sleep(REQUEUE_SECONDS)
            return int(code)

    def _is_done(self) -> bool:
        return (read(Path(self.folder)) or {}).get("state") == "done"

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start the process of the run, with Slurm's warning blocked.

        Slurm sends the warning to every process of a job step.  This process handles it for both
        and stops the process of the run with SIGTERM.  A warning that arrives during the start is
        delivered later.
        """
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {SLURM_WARNING})
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
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        return process

    def stop(self) -> None:
        """Let the process finish its step and write a checkpoint; called in a signal handler, which
        may interrupt ``poll`` or ``wait``."""
        self.stop_requested = True
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
        """Job that submitit submits again after it has requested the end of this one."""
        from submitit.helpers import DelayedSubmission

        self.stop()
        self.process = None
        self.stop_requested = False
        return DelayedSubmission(self)


def create_cluster_job(snapshot: Snapshot, run: FrozenRun) -> ClusterJob:
    """Job of a run."""
    environment = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ENV_PREFIXES)}
    environment |= run_variables(snapshot, run)
    folder = str(snapshot.folder(run))
    return ClusterJob(
        str(snapshot.file), run.name, folder, str(log_file(snapshot, run)), environment
    )
