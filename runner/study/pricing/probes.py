"""Probes of many runs: processes of ``probe_server`` that measure one run at a time each."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from runner.errors import RunFailure
from runner.study.job_pool import THREAD_VARIABLES
from runner.study.pricing.price import Probe
from runner.study.pricing.probe import Sample
from runner.study.snapshot import FrozenRun


class Prober:
    """A process that measures runs, one at a time."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        # what a killed probe leaves is in here, too
        self.folder = TemporaryDirectory(prefix="runner-price-", ignore_cleanup_errors=True)
        threads = dict.fromkeys(THREAD_VARIABLES, "1")
        environment = {**os.environ, **threads, "TMPDIR": self.folder.name}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "runner.study.pricing.probe_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only us
        )
        self.ready: dict[str, float] | None = None  # what its imports took

    def measure(self, run: FrozenRun) -> Probe:
        """Measures miniatures of a run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "id": run.signature,
            "experiment": run.experiment,
            "config": run.config,
            "seconds": self.seconds,
        }
        probe = Probe(error="its probe ended without a word")
        try:
            if self.ready is None:
                self.ready = json.loads(self.process.stdout.readline())
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                answer = json.loads(line)
                read_answer(probe, answer, self.ready)
                if "end" in answer:
                    break
        except (OSError, ValueError):  # it was killed from outside
            pass
        return probe

    def stop(self) -> None:
        """Ends the process, in the middle of a probe too, and removes what it wrote."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # and the fork that measures
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.folder.cleanup()


def read_answer(probe: Probe, answer: dict[str, Any], ready: dict[str, float]) -> None:
    """Adds a line of an answer to a probe; ``ready``: what imports took."""
    if "total" in answer:
        probe.total, probe.vectorised = answer["total"], answer["vectorised"]
        probe.axis = answer["axis"]
        probe.start = ready["start"] + answer["start"]
        probe.base_mib = max(0.0, ready["mib"] - answer["mib"])
    elif "sample" in answer:
        sample = Sample(**answer["sample"])
        if answer.get("again"):  # compiled code is on disk by now, as it will be for the run
            probe.samples[0] = sample
        else:
            probe.samples.append(sample)
        probe.error = ""
    elif "error" in answer:
        probe.error = answer["error"]
    elif "end" in answer:
        probe.late, probe.seconds = answer["late"], answer["seconds"]


@contextmanager
def _probers(number: int, seconds: float) -> Iterator[SimpleQueue[Prober]]:
    """Processes that measure, as many at once; they are ended with what goes on inside."""
    idle: SimpleQueue[Prober] = SimpleQueue()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does
    probers = [Prober(seconds) for _ in range(number)]
    for prober in probers:
        idle.put(prober)
    try:
        yield idle
    finally:
        for prober in probers:
            prober.stop()
        signal.signal(signal.SIGTERM, before)


def measure_runs(
    runs: Sequence[FrozenRun],
    jobs: int,
    seconds: float,
    told: Callable[[int, int], None],
    ends: float = math.inf,
) -> list[Probe]:
    """Probes of runs, in their order, ``jobs`` at a time; ``told`` of how many are done.

    No probe begins after ``ends`` of the monotonic clock.

    Raises:
        RunFailure: Ctrl-C.
    """
    if not runs:
        return []
    done: list[None] = []

    with ThreadPoolExecutor(jobs) as executor, _probers(min(jobs, len(runs)), seconds) as idle:

        def measure(run: FrozenRun) -> Probe:
            prober = idle.get()
            try:
                if time.monotonic() > ends:
                    return Probe(error="half of the budget was spent before its probe")
                return prober.measure(run)
            finally:
                idle.put(prober)
                done.append(None)
                told(len(done), len(runs))

        try:
            return list(executor.map(measure, runs))
        except BaseException as error:
            executor.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                raise RunFailure("interrupted while runs were probed; nothing was run") from None
            raise
