"""Probes of runs: miniatures in a temporary folder, used to predict the cost of runs."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from runner.disk.scratch import scratch_folder
from runner.errors import RunFailure
from runner.study import snapshot as snapshots
from runner.study.display import last_line
from runner.study.executor import RunningProcess
from runner.study.job_pool import JobPool, command
from runner.study.pricing.price import (
    PROBE_SPREAD,
    ROUGH_SPREAD,
    MeasuredRun,
    Price,
    Prices,
    price_run,
)
from runner.study.pricing.probe import limit
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import show_count

UNRECORDED = {"tracking": False, "keep_diff": False}
TOO_LATE = Price(error="half of the budget was used before its probe")


def price_probe(run: FrozenRun, folder: Path, failure: str) -> Price:
    """Price of a run from the records of its miniatures; ``failure`` is the reason why some are
    missing.
    """
    records = (MeasuredRun.read(path.parent) for path in folder.glob("*/*/run.json"))
    runs = sorted(
        (record for record in records if record is not None), key=lambda run: run.units(run.config)
    )
    if not runs:
        return Price(error=failure)
    note = failure and f"probe: {failure}"
    spread = ROUGH_SPREAD if failure else PROBE_SPREAD
    return price_run(run.config, runs, source="probe", spread=spread, note=note)


def measure_runs(
    snapshot: Snapshot, runs: Sequence[FrozenRun], jobs: int, seconds: float, ends: float = math.inf
) -> Prices:
    """Prices from probes by signature, with ``jobs`` probes in parallel.

    No probe begins after ``ends`` on the monotonic clock.

    Raises:
        RunFailure: interrupted by a signal.
    """
    prices = {run.signature: TOO_LATE for run in runs}
    with scratch_folder() as folder:
        small = [replace(run, config=run.config | UNRECORDED) for run in runs]
        study = replace(snapshot, runs=small, output_dir=folder)

        def end(job: RunningProcess, code: int, _stopped: bool) -> None:
            failure = last_line(job.log) if code else ""
            if code == -signal.SIGXCPU:
                failure = f"took more than {limit(seconds)} s; raise --probe-seconds"
            place = folder / job.run.signature
            prices[job.run.signature] = price_probe(job.run, place, failure)
            show_count("probing", sum(p is not TOO_LATE for p in prices.values()), len(runs))

        def start(snapshot: Snapshot, run: FrozenRun) -> list[str]:
            return [*command(snapshot, run, "runner.study.pricing.probe"), str(seconds)]

        def drop_late(waiting: list[FrozenRun]) -> None:
            if time.monotonic() > ends:
                waiting.clear()

        snapshots.save(study)
        pool = JobPool(study, end, jobs=jobs, command=start, drop_late=drop_late)
        pool.go(small)
    if pool.stopped_by is not None:
        raise RunFailure("interrupted during probes; no run was started")
    return prices
