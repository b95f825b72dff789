"""Runs of a study as processes of their own, a few at a time: one that crashes takes no other with
it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runner.study.executor import GRACE_SECONDS, Executor, log_file
from runner.study.left_going import DetachedRun, take_run_lock
from runner.study.snapshot import FrozenRun, Snapshot

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible() -> list[str]:
    """The GPUs of this machine that we may use, as CUDA names them."""
    value = os.environ.get(VISIBLE_GPUS_VARIABLE)
    if value is not None:
        return [name.strip() for name in value.split(",") if name.strip()]
    import torch  # seconds, and only where a run wants a GPU

    return [str(number) for number in range(torch.cuda.device_count())]


@dataclass
class GpuSlots:
    """Places for runs; a run with device=cuda takes one, a run that names its GPU (cuda:1) or needs
    none takes none."""

    per_gpu: int = 1
    taken: Counter[str] = field(default_factory=Counter)

    @cached_property
    def names(self) -> list[str]:
        return visible()

    def _wants_gpu(self, config: dict[str, Any]) -> bool:
        return config.get("device") == "cuda" and bool(self.names)

    def free(self, config: dict[str, Any]) -> bool:
        """True if a run can start now."""
        return (
            not self._wants_gpu(config)
            or min(self.taken[name] for name in self.names) < self.per_gpu
        )

    def take(self, config: dict[str, Any]) -> dict[str, str]:
        """The variable that shows a run its GPU, the one with the fewest runs; empty where it takes
        none."""
        if not self._wants_gpu(config):
            return {}
        name = min(self.names, key=lambda name: self.taken[name])
        self.taken[name] += 1
        return {VISIBLE_GPUS_VARIABLE: name}

    def give(self, taken: dict[str, str]) -> None:
        """A run has ended."""
        for name in taken.values():
            self.taken[name] -= 1


# Exit codes of a run that was asked to stop: by itself, by an early signal, by a second Ctrl-C.
STOPPED_EXIT_CODES = (
    128 + signal.SIGTERM,
    128 + signal.SIGINT,
    -signal.SIGTERM,
    -signal.SIGINT,
    -signal.SIGKILL,
)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def command(snapshot: Snapshot, run: FrozenRun, module: str = "runner.study.one_run") -> list[str]:
    """Command line of a module that runs one run of a study."""
    # -P: no module of the current folder is imported in place of another.
    return [sys.executable, "-P", "-m", module, str(snapshot.file), run.name]


def run_variables(snapshot: Snapshot, run: FrozenRun) -> dict[str, str]:
    """Variables of the environment that the process of a run gets."""
    threads = str(run.config.get("threads", 1))
    return {**dict.fromkeys(THREAD_VARIABLES, threads), "RUNNER_STUDY": snapshot.name}


@dataclass
class JobPool(Executor):
    """Pool that starts runs as processes, and forwards SIGINT and SIGTERM to them as SIGTERM.

    The runs then checkpoint and stop.

    Runs that are already going, of this study or started by hand, are not started again:
    they count towards the parallel jobs, and are waited for; of them, only the runs of a
    study that is no longer alive get a signal.  ``drop_late`` takes runs out of those that
    wait.  A second Ctrl-C kills the processes immediately.
    """

    poll_seconds = 0.2
    jobs: int = 1
    command: Callable[[Snapshot, FrozenRun], list[str]] = command
    gpus: GpuSlots = field(default_factory=GpuSlots)
    drop_late: Callable[[list[FrozenRun]], None] = lambda waiting: None
    is_hard: bool = False  # after a second Ctrl-C

    def note_signal(self, signum: int, _frame: Any) -> None:
        """Handler of the signals that stop it."""
        self.is_hard = self.stopped_by is not None and signum == signal.SIGINT
        super().note_signal(signum, _frame)

    def _start(self, run: FrozenRun) -> None:
        log = log_file(self.snapshot, run)
        leftover = DetachedRun(self.snapshot, run)
        lock = None if leftover.going() else take_run_lock(self.snapshot, run)
        if lock is None:
            self.add(run, leftover)
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        gpu = self.gpus.take(run.config)
        with lock, log.open("ab") as file:
            # A session of its own: Ctrl-C reaches only this process, which then stops the others in
            # order.
            process = subprocess.Popen(
                self.command(self.snapshot, run),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **run_variables(self.snapshot, run), **gpu},
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
            lock.write(f"{process.pid} {os.getpid()}")
        self.add(run, process, gpu)

    def start_waiting(self) -> None:
        """Start the first that wait and for whom there is a place, on a GPU where they want one."""
        self.drop_late(self.waiting)
        for run in list(self.waiting):
            if len(self.going) < self.jobs and self.gpus.free(run.config):
                self.waiting.remove(run)
                self._start(run)

    def reap(self) -> None:
        """Take out and report those that have ended."""
        for job in [g for g in self.going if g.process.poll() is not None]:
            self.going.remove(job)
            self.gpus.give(job.gpu)
            is_detached = isinstance(job.process, DetachedRun)
            if self.stopped_by is None and is_detached and not job.process.has_ended():
                # it was stopped in between: this study continues it
                self.waiting.append(job.run)
            else:
                self.end(job, job.process.poll() or 0)

    def stop(self) -> None:
        """Stop those that have not ended, and wait for them."""
        self.going = [
            g
            for g in self.going
            if not isinstance(g.process, DetachedRun) or g.process.number() is not None
        ]
        deadline = time.monotonic() + GRACE_SECONDS
        for job in self.going:
            job.process.terminate()
        while self.going:
            if self.is_hard or time.monotonic() > deadline:
                for job in self.going:
                    job.process.kill()
            self.reap()
            self.on_poll(self.going)
            time.sleep(self.poll_seconds)
