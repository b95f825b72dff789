"""Jobs of a study as tasks of a Ray cluster.

If a node dies, Ray restarts its jobs on another.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from typing import Any

from runner.errors import ConfigError
from runner.study.cluster.cluster_job import ClusterJob

PATIENCE = 10.0  # seconds to reach a cluster


@dataclass
class RayTask:
    """A task, as one waits for a process."""

    ref: Any
    cause: str = ""  # of an end without a result

    @property
    def id(self) -> str:
        number: str = self.ref.hex()[:12]
        return number

    def poll(self) -> int | None:
        """None until it has ended, then an exit code."""
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
        """Ray's error, where its head or the task was lost; a dead worker's task starts again."""
        return self.cause

    def stop(self) -> None:
        """Its process notices that nobody holds its input any more, writes a checkpoint and
        ends."""
        import ray

        ray.cancel(self.ref)


class RayEngine:
    """Ray engine.

    ``keys`` are the preset's: ``ray.init`` (address) and ``ray.remote`` (num_cpus,
    num_gpus) of each job.
    """

    name = "ray"
    outlives = False

    def __init__(self, keys: dict[str, Any]):
        self.init = (keys.get("ray") or {}).get("init") or {}
        self.remote = (keys.get("ray") or {}).get("remote") or {}

    def submit(self, jobs: list[ClusterJob]) -> list[RayTask]:
        """A task of each.

        Raises:
            ConfigError: the cluster cannot be reached.
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
                    f"hydra.launcher.ray.init.address={where}: {str(error).splitlines()[0]}"
                ) from None
        # As often as nodes die: each time a run resumes from its checkpoint.
        task = ray.remote(**{"num_cpus": 1, "max_retries": -1} | self.remote)(_run_worker)
        return [RayTask(task.options(name=job.name).remote(job)) for job in jobs]


def _answers(address: str) -> None:
    """Ray itself would try for ten minutes.

    Raises:
        OSError: nobody listens at host:port.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _run_worker(job: ClusterJob) -> int:
    try:
        return job()
    finally:
        job.stop()
