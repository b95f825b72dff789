"""Jobs of a study through submitit: a Slurm job array, or processes on this machine.

States of Slurm's jobs are those printed by ``squeue``, with and without accounting.  The controller
forgets a job a few minutes (``MinJobAge``) after its end, or immediately if it is an array element
that never started.  A job unknown to a responding controller has therefore ended.
"""

from __future__ import annotations

import math
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.disk.atomic import alive
from runner.errors import ConfigError
from runner.study.cluster.cluster_job import ClusterJob
from runner.study.executor import GRACE_SECONDS
from runner.terminal.printer import out

FORGOTTEN = "FORGOTTEN"  # ended, and no longer listed by squeue
CAUSES = {
    "CANCELLED": "cancelled, by scancel or an administrator",
    "TIMEOUT": "time limit reached (hydra.launcher.timeout_min), and not requeued",
    "OUT_OF_MEMORY": "out of memory (hydra.launcher.mem_gb)",
    "NODE_FAIL": "node failure, and not requeued by Slurm",
    "PREEMPTED": "preempted, and not requeued; set PreemptMode=REQUEUE for the partition",
    "DEADLINE": "deadline passed",
    "BOOT_FAIL": "the node did not boot",
    "FAILED": "the process failed, see submitit's log",
    "COMPLETED": "ended without a result",
    FORGOTTEN: "no longer in Slurm's queue: cancelled, or ended some time ago",
}
SLURM_ENDED = set(CAUSES)
SQUEUE_FORMAT = "%i|%T"
INVALID = "Invalid job id"  # squeue's answer for a single, forgotten job
SECONDS_OF_ONE_CALL = 60
# seconds between calls
SHORTEST_INTERVAL = 2.0
LONGEST_INTERVAL = 30.0


class SlurmStates:
    """States of all jobs of a study, from one call for all of them.

    The interval between calls is 2 s at first and then a tenth of the time since the last job was
    added, at most 30 s.  While a controller does not respond, the last states are kept, and a note
    is printed once.
    """

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._waiting: set[str] = set()  # jobs that have not ended
        self._is_silent = False
        self._added = self._asked = -math.inf

    def state(self, job: str) -> str:
        """State of a job; ``PENDING`` before Slurm has answered."""
        now = time.monotonic()
        if job not in self._waiting and self._states.get(job) not in SLURM_ENDED:
            self._waiting.add(job)
            self._added = now
            if job not in self._states:
                self._states[job] = "PENDING"
                self._asked = -math.inf
        interval = min(LONGEST_INTERVAL, max(SHORTEST_INTERVAL, (now - self._added) / 10))
        if job in self._waiting and now - self._asked > interval:
            self._states |= self._ask(self._waiting)
            self._waiting = {
                number for number in self._waiting if self._states[number] not in SLURM_ENDED
            }
            self._asked = time.monotonic()
        return self._states[job]

    def _ask(self, jobs: set[str]) -> dict[str, str]:
        """States of ``jobs``, and of others of their arrays; empty without an answer."""
        numbers = ",".join(sorted({job.partition("_")[0] for job in jobs}))
        command = ["squeue", "--array", "--states=all", "--noheader", f"--jobs={numbers}"]
        try:
            done = _call([*command, f"--format={SQUEUE_FORMAT}"])
        except (OSError, subprocess.TimeoutExpired):
            return self._report_silence("squeue is not on the PATH, or timed out")
        if done.returncode != 0 and INVALID not in done.stderr:
            return self._report_silence((done.stderr.strip().splitlines() or ["no message"])[-1])
        self._is_silent = False
        rows = (line.partition("|") for line in done.stdout.splitlines())
        return dict.fromkeys(jobs, FORGOTTEN) | {job: state for job, _, state in rows}

    def _report_silence(self, message: str) -> dict[str, str]:
        if not self._is_silent:
            out.print(
                f"note     Slurm does not respond: {message}; its jobs continue", style="yellow"
            )
        self._is_silent = True
        return {}


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_OF_ONE_CALL)


GENERAL = {
    "timeout_min",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
    "mem_gb",
    "nodes",
    "stderr_to_stdout",
}
ENDED = SLURM_ENDED | {"FINISHED", "INTERRUPTED"}
RESULT_SECONDS = 5.0
SIGNAL_MARGIN = 0.7  # share of signal_delay_s for the process of a run to stop


@dataclass
class QueuedJob:
    """A submitted job with the interface of a process.

    ``states`` are Slurm's states; None for a process on this machine.
    """

    job: Any
    states: SlurmStates | None
    # time when the job was first observed to have ended without a result
    seen_ended: float | None = None

    @property
    def id(self) -> str:
        return str(self.job.job_id)

    def state(self) -> str:
        """State in the engine's words: PENDING, RUNNING, …"""
        if self.job.paths.result_pickle.exists():
            return "FINISHED"
        if self.states is not None:
            return self.states.state(self.id)
        state = str(self.job.get_info(mode="force").get("jobState", "") or "PENDING")
        if state.startswith("NO PROCESS"):  # submitted by an earlier command
            return "RUNNING" if alive(int(self.id)) else "INTERRUPTED"
        return state.split()[0]

    def poll(self) -> int | None:
        """Exit code, or None while the job has not ended."""
        state = self.state()
        if state == "FINISHED" or self.job.paths.result_pickle.exists():
            try:
                return int(self.job.result())
            except Exception:  # the error message is in submitit's log
                return 1
        if state not in ENDED:
            self.seen_ended = None
            return None
        # on a shared disk the result may appear a few seconds after the job's end
        self.seen_ended = self.seen_ended or time.monotonic()
        return 1 if time.monotonic() - self.seen_ended >= RESULT_SECONDS else None

    def explain_end(self) -> str:
        """Reason why the job ended without a result; empty if there is a result."""
        state = self.state()
        if self.states is None or state == "FINISHED":
            return ""
        cause = f": {CAUSES[state]}" if state in CAUSES else ""
        return f"slurm {self.id} {state}{cause}"

    def stop(self) -> None:
        """Do nothing: queued jobs continue without the study's process."""


@dataclass
class SubmititEngine:
    """Submitit engine; ``name`` is slurm or slurm_local; ``keys`` come from the preset."""

    outlives = True  # jobs continue after the study's command ends

    name: str
    keys: dict[str, Any]
    folder: Path

    def __post_init__(self) -> None:
        is_slurm = self.name == "slurm"
        self.kind = "slurm" if is_slurm else "local"
        self.states = SlurmStates() if is_slurm else None

    def submit(self, jobs: list[ClusterJob]) -> list[QueuedJob]:
        """Submit all jobs as one array.

        Raises:
            ConfigError: the engine is not reachable or refuses a key.
        """
        import submitit

        retries = self.keys.get("max_num_timeout", 10)
        if delay := self.keys.get("signal_delay_s"):
            for job in jobs:
                job.grace = min(GRACE_SECONDS, SIGNAL_MARGIN * float(delay))
        try:
            executor = submitit.AutoExecutor(
                cluster=self.kind,
                folder=self.folder / "%j",
                **{f"{self.kind}_max_num_timeout": retries},
            )
            keys = {k: v for k, v in self.keys.items() if k != "max_num_timeout" and v is not None}
            executor.update_parameters(
                name="study",
                **{k if k in GENERAL else f"{self.kind}_{k}": v for k, v in keys.items()},
            )
            with executor.batch():
                submissions = [executor.submit(job) for job in jobs]
        except (
            RuntimeError,
            ValueError,
            NameError,
            TypeError,
            OSError,
            submitit.core.utils.FailedJobError,
        ) as error:
            raise ConfigError(
                f"hydra/launcher={self.name}: {str(error).strip().splitlines()[-1]}"
            ) from None
        return [QueuedJob(job, self.states) for job in submissions]

    def find_job(self, number: str) -> QueuedJob:
        """Job submitted by an earlier command."""
        import submitit

        job_class = submitit.SlurmJob if self.kind == "slurm" else submitit.LocalJob
        return QueuedJob(job_class(folder=self.folder / "%j", job_id=number), self.states)
