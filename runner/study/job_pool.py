"""Pool of processes for the runs of a study, so that the crash of a run does not affect others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runner.catalogue.settings import Values
from runner.study.executor import GRACE_SECONDS, Executor, log_file
from runner.study.fork_server import ForkedRun, Server
from runner.study.left_going import DetachedRun
from runner.study.snapshot import FrozenRun, Snapshot

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible() -> list[str]:
    """GPUs available to this process, by their CUDA names."""
    value = os.environ.get(VISIBLE_GPUS_VARIABLE)
    if value is not None:
        return [name.strip() for name in value.split(",") if name.strip()]
    import torch  # takes seconds, so only for runs on a GPU

    return [str(number) for number in range(torch.cuda.device_count())]


@dataclass
class GpuSlots:
    """Slots of GPUs; a run with device=cuda takes one, a run with a specific GPU (cuda:1) or
    without a GPU takes none.
    """

    per_gpu: int = 1
    taken: Counter[str] = field(default_factory=Counter)

    @cached_property
    def names(self) -> list[str]:
        return visible()

    def _wants_gpu(self, config: Values) -> bool:
        return config.get("device") == "cuda" and bool(self.names)

    def free(self, config: Values) -> bool:
        """True if a run can start now."""
        return (
            not self._wants_gpu(config)
            or min(self.taken[name] for name in self.names) < self.per_gpu
        )

    def take(self, config: Values) -> dict[str, str]:
        """Assign the GPU with the fewest runs; return the environment variable for the run, or an
        empty dict if it takes no slot."""
        if not self._wants_gpu(config):
            return {}
        name = min(self.names, key=lambda name: self.taken[name])
        self.taken[name] += 1
        return {VISIBLE_GPUS_VARIABLE: name}

    def give(self, taken: dict[str, str]) -> None:
        """Release the slot of a run that has ended."""
        for name in taken.values():
            self.taken[name] -= 1


# exit codes of a stopped run: its own, after an early signal, after a second Ctrl-C
STOPPED_EXIT_CODES = (
    128 + signal.SIGTERM,
    128 + signal.SIGINT,
    -signal.SIGTERM,
    -signal.SIGINT,
    -signal.SIGKILL,
)

IS_LINUX = sys.platform == "linux"  # forks are safe there
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def command(snapshot: Snapshot, run: FrozenRun, module: str = "runner.study.one_run") -> list[str]:
    """Command line of a module that executes one run of a study."""
    # -P prevents that modules in the current folder shadow others
    return [sys.executable, "-P", "-m", module, str(snapshot.file), run.name]


def run_variables(snapshot: Snapshot, run: FrozenRun) -> dict[str, str]:
    """Environment variables of the process of a run."""
    threads = str(run.config.get("threads", 1))
    return {**dict.fromkeys(THREAD_VARIABLES, threads), "RUNNER_STUDY": snapshot.name}


@dataclass
class JobPool(Executor):
    """Pool that starts runs as processes and forwards SIGINT and SIGTERM to these as SIGTERM.

    The runs then write a checkpoint and stop.

    Runs that are already active, from this study or started by hand, are not started again: they
    count towards the parallel jobs and are awaited; of these, only runs of a study with a dead
    process receive a signal.  ``drop_late`` removes waiting runs.  A second Ctrl-C kills the
    processes immediately.
    """

    poll_seconds = 0.2
    jobs: int = 1
    command: Callable[[Snapshot, FrozenRun], list[str]] = command
    gpus: GpuSlots = field(default_factory=GpuSlots)
    drop_late: Callable[[list[FrozenRun]], None] = lambda waiting: None
    is_hard: bool = False  # after a second Ctrl-C
    _servers: dict[tuple[tuple[str, str], ...], Server] = field(default_factory=dict)

    def note_signal(self, signum: int, _frame: Any) -> None:
        """Handle the signals that stop the pool."""
        self.is_hard = self.stopped_by is not None and signum == signal.SIGINT
        super().note_signal(signum, _frame)

    def _start(self, run: FrozenRun) -> None:
        log = log_file(self.snapshot, run)
        leftover = DetachedRun(self.snapshot, run)
        lock = leftover.take_lock()
        if lock is None:
            self.add(run, leftover)
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        gpu = self.gpus.take(run.config)
        variables = run_variables(self.snapshot, run)
        process: ForkedRun | subprocess.Popen[bytes] | None
        with lock, log.open("ab") as file:
            # a separate session: Ctrl-C reaches only this process, which then stops the others in
            # order.
            process = self._fork(run, variables, lock.fileno(), file.fileno())
            process = process or subprocess.Popen(
                self.command(self.snapshot, run),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables, **gpu},
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
            lock.write(f"{process.pid} {os.getpid()}")
        self.add(run, process, gpu)

    def _fork(
        self, run: FrozenRun, variables: dict[str, str], lock: int, log: int
    ) -> ForkedRun | None:
        """A run forked by the server with these environment variables; None if it needs a process of
        its own or the server has died."""
        if self.command is not command or run.config.get("device") != "cpu" or not IS_LINUX:
            return None
        key = tuple(variables.items())
        if key not in self._servers or not self._servers[key].is_alive():
            self._servers[key] = Server(variables)
        with suppress(OSError):
            return self._servers[key].start(self.snapshot, run, lock, log)
        return None

    def go(self, runs: list[FrozenRun]) -> None:
        """Execute all runs in order, until a signal stops the pool."""
        try:
            super().go(runs)
        finally:
            for server in self._servers.values():
                server.close()

    def start_waiting(self) -> None:
        """Start waiting runs as long as job and GPU slots are free."""
        self.drop_late(self.waiting)
        for run in list(self.waiting):
            if len(self.going) < self.jobs and self.gpus.free(run.config):
                self.waiting.remove(run)
                self._start(run)

    def reap(self) -> None:
        """Remove and report runs that have ended."""
        for job in [g for g in self.going if g.process.poll() is not None]:
            self.going.remove(job)
            self.gpus.give(job.gpu)
            is_detached = type(job.process) is DetachedRun
            if self.stopped_by is None and is_detached and not job.process.has_ended():
                # a detached run was stopped: this study resumes it
                self.waiting.append(job.run)
            else:
                self.end(job, job.process.poll() or 0)

    def stop(self) -> None:
        """Stop active runs and wait for them."""
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
