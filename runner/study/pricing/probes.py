"""Probes of runs, each in a process of its own, which a fork server starts.

The server imports torch once, and the memory of a fork is its own.  A process sends the probe after
each miniature; the last one that it has sent counts.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any

from runner.errors import RunFailure
from runner.study.pricing.probe import Probe, limit_cpu, measure, patience
from runner.study.snapshot import FrozenRun

COLD_SECONDS = 30.0  # CPU seconds more that a first miniature may take, to compile
# of a probe's seconds: a first miniature that compiled for longer is measured again
COLD_SHARE = 0.3
BUSY = 4.0  # time by the clock over CPU time, on a machine that others use too
PRELOADED = ["runner.study.pricing.preloaded"]
CONTEXT = multiprocessing.get_context("forkserver")


class ProbeProcess:
    """A process that measures a run; ``probe`` is the last one that it has sent.

    ``first_only``: it measures the first miniature alone, which finds compiled code on disk.
    """

    def __init__(self, run: FrozenRun, seconds: float, folder: str, first_only: bool = False):
        self.run = run
        self.seconds = seconds
        self.first_only = first_only
        self.probe = Probe()
        self.reader, writer = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(
            target=_measure_here,
            args=(run.config, run.experiment, seconds, writer, folder, first_only),
        )
        self.process.start()
        writer.close()
        self.ends = time.monotonic() + BUSY * _allowed(seconds)

    def is_running(self) -> bool:
        """Receives what was sent; False after the end of the process, or of its time."""
        try:
            while self.reader.poll():
                self.probe = self.reader.recv()
        except (EOFError, OSError):
            return False
        return time.monotonic() < self.ends

    def stop(self) -> Probe:
        """Ends the process, in the middle of a miniature too; its probe."""
        if time.monotonic() >= self.ends:
            self.process.kill()
        self.process.join()
        self.reader.close()
        if self.process.exitcode == -signal.SIGXCPU or time.monotonic() >= self.ends:
            has_samples = bool(self.probe.samples)
            allowed = patience(self.seconds) if has_samples else _allowed(self.seconds)
            self.probe.late = f"took more than {allowed:.0f} s"
            self.probe.seconds += allowed
        elif self.process.exitcode and self.probe.samples:
            self.probe.late = "ended without a word"
        elif self.process.exitcode:
            self.probe.error = "its probe ended without a word"
        return self.probe


def _allowed(seconds: float) -> float:
    """CPU seconds that a probe may take."""
    return COLD_SECONDS + patience(seconds)


def _measure_here(
    config: dict[str, Any],
    experiment: str,
    seconds: float,
    writer: Connection,
    folder: str,
    first_only: bool,
) -> None:
    """Measures one run in this process; a mistake is an error of the probe, in one line."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    limit_cpu(_allowed(seconds))
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    warnings.simplefilter("ignore")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    probe = Probe()
    try:
        for probe in measure(config, experiment, seconds):
            writer.send(probe)
            if first_only:
                return
    except Exception as error:
        line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        writer.send(replace(probe, error=line))


def end_with_parent() -> None:
    """Ends this process with the one that asked for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _has_compiled(probe: Probe, seconds: float) -> bool:
    """True if the first miniature took long over the second, which found what it compiled."""
    if len(probe.samples) < 2:
        return False
    first, second = (sample.usage for sample in probe.samples[:2])
    phases = [phase for phase in ("set_up", "training", "evaluations", "final") if second[phase]]
    return sum(first[phase] - second[phase] for phase in phases) > COLD_SHARE * seconds


@dataclass
class Prober:
    """Measures runs, ``jobs`` at a time, in ``seconds`` each."""

    seconds: float
    jobs: int
    folder: str  # temporary: what a killed process leaves is in here, too
    probes: dict[str, Probe] = field(default_factory=dict)  # by signature
    processes: list[ProbeProcess] = field(default_factory=list)

    def start(self, runs: list[FrozenRun], ends: float) -> None:
        """Starts probes of waiting ``runs`` in free places; after ``ends`` they get an error."""
        while runs and len(self.processes) < self.jobs:
            run = runs.pop(0)
            if time.monotonic() > ends:
                late = "half of the budget was spent before its probe"
                self.probes[run.signature] = Probe(error=late)
            else:
                self._start(run)

    def collect(self) -> None:
        """Waits until a process has sent something, and takes the probes of those that ended."""
        next_end = min((process.ends for process in self.processes), default=0.0)
        readers = [process.reader for process in self.processes]
        wait(readers, max(0.0, next_end - time.monotonic()))
        for process in [one for one in self.processes if not one.is_running()]:
            self.processes.remove(process)
            probe = process.stop()
            if process.first_only:  # compiled code was on disk, as it will be for the run
                first = self.probes[process.run.signature]
                first.samples[:1] = probe.samples or first.samples[:1]
                first.seconds += probe.seconds
                continue
            self.probes[process.run.signature] = probe
            if not probe.late and _has_compiled(probe, self.seconds):
                self._start(process.run, first_only=True)

    def _start(self, run: FrozenRun, first_only: bool = False) -> None:
        self.processes.append(ProbeProcess(run, self.seconds, self.folder, first_only))


@contextmanager
def _fork_server() -> Iterator[str]:
    """A server of processes with the imports of a run, and a temporary folder for them.

    SIGTERM interrupts as Ctrl-C does.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    CONTEXT.set_forkserver_preload(PRELOADED)
    try:
        with tempfile.TemporaryDirectory(
            prefix="runner-price-", ignore_cleanup_errors=True
        ) as folder:
            yield folder
        forkserver._forkserver._stop()  # type: ignore[attr-defined]  # runs need its memory
    finally:
        signal.signal(signal.SIGTERM, before)


def measure_runs(
    runs: Sequence[FrozenRun],
    jobs: int,
    seconds: float,
    on_count: Callable[[int, int], None],
    ends: float = math.inf,
) -> list[Probe]:
    """Probes of runs, in their order, ``jobs`` at a time; ``on_count`` gets how many are done.

    No probe begins after ``ends`` of the monotonic clock.

    Raises:
        RunFailure: Ctrl-C.
    """
    if not runs:
        return []
    waiting = list(runs)
    with _fork_server() as folder:
        prober = Prober(seconds, jobs, folder)
        try:
            while waiting or prober.processes:
                prober.start(waiting, ends)
                prober.collect()
                n_repeated = sum(process.first_only for process in prober.processes)
                on_count(len(prober.probes) - n_repeated, len(runs))
        except KeyboardInterrupt:
            raise RunFailure("interrupted while runs were probed; nothing was run") from None
        finally:
            for process in prober.processes:
                process.process.kill()
                process.process.join()
    return [prober.probes[run.signature] for run in runs]
