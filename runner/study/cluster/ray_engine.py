"""Jobs of a study as tasks of a Ray cluster, which restarts the jobs of failed nodes."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from typing import Any

from runner.errors import ConfigError, first_line
from runner.study.cluster.cluster_job import ClusterJob

TIMEOUT_SECONDS = 10.0  # for connecting to a cluster


@dataclass
class RayTask:
    """A task with the interface of a process."""

    ref: Any
    cause: str = ""  # reason of an end without a result

    @property
    def id(self) -> str:
        return str(self.ref.hex()[:12])

    def poll(self) -> int | None:
        """Exit code, or None while the task is running."""
        import ray

        if not ray.wait([self.ref], timeout=0)[0]:
            return None
        try:
            return int(ray.get(self.ref))
        except ray.exceptions.RayError as error:
            first = (str(error).strip().splitlines() or [""])[0]
            self.cause = f"ray {self.id} {type(error).__name__}: {first}"
            return 1

    def explain_end(self) -> str:
        """Ray's error if the head node or the task was lost; tasks of failed workers are restarted."""
        return self.cause

    def stop(self) -> None:
        """Cancel the task; its process detects the closed input, writes a checkpoint and ends."""
        import ray

        ray.cancel(self.ref)


class RayEngine:
    """Ray engine.

    The keys of the preset belong to ``ray.init`` (address) and ``ray.remote`` (num_cpus,
    num_gpus) for each job.
    """

    name = "ray"
    outlives = False

    def __init__(self, keys: dict[str, Any]):
        ray_keys = keys.get("ray") or {}
        self.init = ray_keys.get("init") or {}
        self.remote = ray_keys.get("remote") or {}

    def submit(self, jobs: list[ClusterJob]) -> list[RayTask]:
        """Submit each job as a task.

        Raises:
            ConfigError: the cluster is not reachable.
        """
        import ray

        if not ray.is_initialized():
            where = str(self.init.get("address") or "")
            try:
                _answers(where)
                ray.init(**{"logging_level": logging.ERROR, "log_to_driver": False} | self.init)
            except (
                OSError,
                ValueError,
                RuntimeError,
            ) as error:  # TimeoutError and ConnectionError are OSErrors
                raise ConfigError(
                    f"hydra.launcher.ray.init.address={where}: {first_line(error)}"
                ) from None
        # unlimited retries: a run resumes from its checkpoint whenever a node fails
        task = ray.remote(**{"num_cpus": 1, "max_retries": -1} | self.remote)(_run_worker)
        return [RayTask(task.options(name=job.name).remote(job)) for job in jobs]


def _answers(address: str) -> None:
    """Check that a cluster accepts connections, because Ray itself tries for ten minutes.

    Raises:
        OSError: no connection to host:port.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS).close()


def _run_worker(job: ClusterJob) -> int:
    try:
        return job()
    finally:
        job.stop()
