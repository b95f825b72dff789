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
from pathlib import Path
from typing import Any

from runner.disk.inside import inside
from runner.study.left_going import DetachedRun, take_run_lock
from runner.study.snapshot import FrozenRun, Snapshot, location

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible() -> list[str]:
    """The GPUs of this machine that we may use, as CUDA names them."""
    value = os.environ.get(VISIBLE_GPUS_VARIABLE)
    if value is not None:
        return [name.strip() for name in value.split(",") if name.strip()]
    import torch  # seconds, and only where a run wants a GPU

    return [str(number) for number in range(torch.cuda.device_count())]


class GpuSlots:
    """Places for runs; a run with device=cuda takes one, a run that names its GPU (cuda:1) or needs
    none takes none."""

    def __init__(self, per_gpu: int = 1, names: list[str] | None = None):
        self.per_gpu = per_gpu
        self._names = names
        self.taken: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        if self._names is None:
            self._names = visible()
        return self._names

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


POLL_INTERVAL_SECONDS = 0.2  # seconds between checks of the processes

GRACE_SECONDS = 120.0  # seconds that stopped runs get to finish their step and write a checkpoint

# Exit codes of a run that was asked to stop: by itself, by an early signal, by a second Ctrl-C.
STOPPED_EXIT_CODES = (
    128 + signal.SIGTERM,
    128 + signal.SIGINT,
    -signal.SIGTERM,
    -signal.SIGINT,
    -signal.SIGKILL,
)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class RunningProcess:
    """A process, or a job of a cluster's engine, and what it runs."""

    run: FrozenRun
    process: Any  # Popen | DetachedRun | PollableJob
    started: float
    log: Path
    gpu: dict[str, str] = field(default_factory=dict)  # the variable that assigns it its GPU


def command(snapshot: Snapshot, run: FrozenRun, module: str = "runner.study.one_run") -> list[str]:
    """Command line of a module that runs one run of a study."""
    snapshot_file = str(location(snapshot.name, snapshot.output_dir))
    # -P: no module of the current folder is imported in place of another.
    return [sys.executable, "-P", "-m", module, snapshot_file, run.name]


class JobPool:
    """Pool that starts runs, watches them, and forwards SIGINT and SIGTERM to them as SIGTERM.

    The runs then checkpoint and stop.

    Runs that are already going, of this study or started by hand, are not started again:
    they count towards the parallel jobs, and are waited for; of them, only the runs of a
    study that is no longer alive get a signal.  ``stopped_by`` is the signal that ended the
    pool, if one did.  ``drop_late`` takes runs out of those that wait.  A second Ctrl-C kills the processes immediately.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        jobs: int,
        on_end: Callable[[FrozenRun, int, float, Path, bool], None],
        on_poll: Callable[[list[RunningProcess]], None] = lambda going: None,
        command: Callable[[Snapshot, FrozenRun], list[str]] = command,
        per_gpu: int = 1,
    ):
        self.gpus = GpuSlots(per_gpu)
        self.snapshot = snapshot
        self.jobs = jobs
        self.on_end = on_end
        self.on_poll = on_poll
        self.command = command
        self.going: list[RunningProcess] = []
        self.waiting: list[FrozenRun] = []
        self.stopped_by: int | None = None
        self.drop_late: Callable[[list[FrozenRun]], None] = lambda waiting: None
        self._hard = False

    def _note(self, signum: int, _frame: Any) -> None:
        self._hard = self.stopped_by is not None and signum == signal.SIGINT
        self.stopped_by = self.stopped_by or signum

    def _log(self, run: FrozenRun) -> Path:
        logs = location(self.snapshot.name, self.snapshot.output_dir).parent / "logs"
        return inside(logs, f"{run.signature}.log", "signature")

    def _start(self, run: FrozenRun) -> None:
        log = self._log(run)
        leftover = DetachedRun(self.snapshot, run)
        lock = None if leftover.going() else take_run_lock(self.snapshot, run)
        if lock is None:
            self.going.append(RunningProcess(run, leftover, time.monotonic(), log))
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        threads = str(run.config.get("threads", 1))
        gpu = self.gpus.take(run.config)
        environment = {
            **os.environ,
            **dict.fromkeys(THREAD_VARIABLES, threads),
            "RUNNER_STUDY": self.snapshot.name,
            **gpu,
        }
        with lock, log.open("ab") as file:
            # A session of its own: Ctrl-C reaches only this process, which then stops the others in
            # order.
            process = subprocess.Popen(
                self.command(self.snapshot, run),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
            lock.write(f"{process.pid} {os.getpid()}")
        self.going.append(RunningProcess(run, process, time.monotonic(), log, gpu))

    def _pop_next_run(self) -> FrozenRun | None:
        """The first that waits and for whom there is a place, on a GPU where it wants one."""
        for run in self.waiting if len(self.going) < self.jobs else []:
            if self.gpus.free(run.config):
                self.waiting.remove(run)
                return run
        return None

    def _reap(self) -> None:
        for job in [g for g in self.going if g.process.poll() is not None]:
            self.going.remove(job)
            self.gpus.give(job.gpu)
            if (
                self.stopped_by is None
                and isinstance(job.process, DetachedRun)
                and not job.process.has_ended()
            ):
                # it was stopped in between: this study continues it
                self.waiting.append(job.run)
            else:
                seconds = time.monotonic() - job.started
                self.on_end(
                    job.run, job.process.poll() or 0, seconds, job.log, self.stopped_by is not None
                )

    def _stop(self) -> None:
        self.going = [
            g
            for g in self.going
            if not isinstance(g.process, DetachedRun) or g.process.number() is not None
        ]
        deadline = time.monotonic() + GRACE_SECONDS
        for job in self.going:
            job.process.terminate()
        while self.going:
            if self._hard or time.monotonic() > deadline:
                for job in self.going:
                    job.process.kill()
            self._reap()
            self.on_poll(self.going)
            time.sleep(POLL_INTERVAL_SECONDS)

    def go(self, runs: list[FrozenRun]) -> None:
        """Runs them all, in order, ``jobs`` at a time, unless a signal stops it."""
        before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        self.waiting = list(runs)
        try:
            while (self.waiting or self.going) and self.stopped_by is None:
                self.drop_late(self.waiting)
                while (run := self._pop_next_run()) is not None:
                    self._start(run)
                self.on_poll(self.going)
                time.sleep(POLL_INTERVAL_SECONDS)
                self._reap()
        finally:
            self._stop()
            for s, handler in before.items():
                signal.signal(s, handler)
