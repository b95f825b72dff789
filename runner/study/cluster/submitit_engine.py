"""Jobs of a study through submitit: an array of Slurm, or processes of this machine in its
place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.disk.atomic import alive
from runner.errors import ConfigError
from runner.study.cluster import slurm_states
from runner.study.cluster.cluster_job import ClusterJob
from runner.study.executor import GRACE_SECONDS

GENERAL = {
    "timeout_min",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
    "mem_gb",
    "nodes",
    "stderr_to_stdout",
}
ENDED = slurm_states.ENDED | {"FINISHED", "INTERRUPTED"}
RESULT_SECONDS = 5.0
SIGNAL_MARGIN = 0.7  # of signal_delay_s, that the process of a run gets to stop


@dataclass
class QueuedJob:
    """A job that was submitted, as one waits for a process.

    ``states`` are Slurm's; None: a process of this machine in Slurm's place.
    """

    job: Any
    states: slurm_states.SlurmStates | None
    seen_ended: float | None = None  # first look that found it ended without a result

    @property
    def id(self) -> str:
        return str(self.job.job_id)

    def state(self) -> str:
        """In the engine's words: PENDING, RUNNING, …"""
        if self.job.paths.result_pickle.exists():
            return "FINISHED"
        if self.states is not None:
            return self.states.state(self.id)
        state = str(self.job.get_info(mode="force").get("jobState", "") or "PENDING")
        if state.startswith("NO PROCESS"):  # submitted by an earlier command
            return "RUNNING" if alive(int(self.id)) else "INTERRUPTED"
        return state.split()[0]

    def poll(self) -> int | None:
        """None until it has ended, then an exit code."""
        state = self.state()
        if state == "FINISHED" or self.job.paths.result_pickle.exists():
            try:
                return int(self.job.result())
            except Exception:  # submitit's log has its own error message
                return 1
        if state not in ENDED:
            self.seen_ended = None
            return None
        # a shared disk may show the result some seconds after the job's end
        self.seen_ended = self.seen_ended or time.monotonic()
        return 1 if time.monotonic() - self.seen_ended >= RESULT_SECONDS else None

    def explain_end(self) -> str:
        """Cause of an end that left no result, in words; empty if there is a result."""
        state = self.state()
        if self.states is None or state == "FINISHED":
            return ""
        return f"slurm {self.id} {slurm_states.explain_end(state)}"

    def stop(self) -> None:
        """Jobs of a queue go on without us."""


@dataclass
class SubmititEngine:
    """Submitit engine; ``name`` is slurm or slurm_local; ``keys`` are the preset's."""

    outlives = True  # its jobs go on when the study's command ends

    name: str
    keys: dict[str, Any]
    folder: Path

    def __post_init__(self) -> None:
        is_slurm = self.name == "slurm"
        self.kind = "slurm" if is_slurm else "local"
        self.states = slurm_states.SlurmStates() if is_slurm else None

    def submit(self, jobs: list[ClusterJob]) -> list[QueuedJob]:
        """One array of them all.

        Raises:
            ConfigError: the engine cannot be reached, or refuses a key.
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
        """A job that was submitted by a command of before."""
        import submitit

        job_class = submitit.SlurmJob if self.kind == "slurm" else submitit.LocalJob
        return QueuedJob(job_class(folder=self.folder / "%j", job_id=number), self.states)
