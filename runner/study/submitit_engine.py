"""Jobs of a study through submitit: an array of Slurm, or processes of this machine in its
place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.disk.atomic import alive
from runner.errors import ConfigError
from runner.study.cluster_job import ClusterJob

GENERAL = {
    "timeout_min",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
    "mem_gb",
    "nodes",
    "stderr_to_stdout",
}
ENDED = {
    "COMPLETED",
    "FINISHED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "DEADLINE",
    "INTERRUPTED",
}
# A node that failed, or was preempted: Slurm puts the job back into its queue itself.


class QueuedJob:
    """A job that was submitted, as one waits for a process."""

    def __init__(self, job: Any, local: bool):
        self.job = job
        self.local = local
        self.id = str(job.job_id)

    def state(self) -> str:
        """In the engine's words: PENDING, RUNNING, …"""
        if self.job.paths.result_pickle.exists():
            return "FINISHED"
        if self.local and self.job._dominant_process is None:  # submitted by an earlier command
            return "RUNNING" if alive(int(self.id)) else "INTERRUPTED"
        words: str = (
            self.job.get_info(mode="force").get("jobState" if self.local else "State", "")
            or "PENDING"
        )
        return words.split()[0]  # CANCELLED by 1000

    def poll(self) -> int | None:
        """None until it has ended, then an exit code."""
        if self.job.paths.result_pickle.exists():
            try:
                return int(self.job.result())
            except Exception:  # submitit's log has its own error message
                return 1
        if self.local:
            return 1 if self.state() in ENDED else None
        self.job.watcher.update_if_long_enough("standard")
        return 1 if str(self.job.state).split()[0] in ENDED else None

    def stop(self) -> None:
        """Jobs of a queue go on without us."""


class SubmititEngine:
    """Submitit engine; ``kind`` is slurm or local; ``keys`` are the preset's."""

    outlives = True  # its jobs go on when the study's command ends

    def __init__(self, kind: str, keys: dict[str, Any], folder: Path):
        self.kind = kind
        self.keys = keys
        self.folder = folder
        self.name = {"slurm": "slurm", "local": "slurm_local"}[kind]

    def submit(self, jobs: list[ClusterJob]) -> list[QueuedJob]:
        """One array of them all.

        Raises:
            ConfigError: the engine cannot be reached, or refuses a key.
        """
        import submitit

        retries = self.keys.get("max_num_timeout", 10)
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
        return [QueuedJob(job, self.kind == "local") for job in submissions]

    def find_job(self, number: str) -> QueuedJob:
        """A job that was submitted by a command of before."""
        import submitit

        job_class = submitit.SlurmJob if self.kind == "slurm" else submitit.LocalJob
        return QueuedJob(job_class(folder=self.folder / "%j", job_id=number), self.kind == "local")
