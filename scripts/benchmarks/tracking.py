"""Benchmark of runs with and without MLflow."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from unittest import mock

import numpy as np

from runner.commands import app
from runner.compose.compose import compose
from runner.execution import duties
from runner.tracking import sync
from runner.tracking.handover import Handover
from runner.tracking.marks import read_marks
from scripts.benchmarks.harness import Report, Way

SMOKE = ["+experiment=friend_or_foe", "smoke=true", "offline=true"]
ALLOWED = 1.0  # seconds
HANGING = "a server that never responds"


def run_smoke(parent: str, seed: int) -> Way:
    """Smoke run in a separate process; seed 0 means without tracking."""
    folders = count()

    def run() -> None:
        folder = f"{parent}/{next(folders)}"
        keys = [f"output_dir={folder}", f"seed={seed}", f"tracking={str(seed > 0).lower()}"]
        command = [sys.executable, "-m", "runner.commands.cli", *SMOKE, *keys]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    return run


@contextmanager
def time_calls(name: str, spent: list[float]) -> Iterator[None]:
    method = vars(Handover)[name]

    def call(self: Handover) -> None:
        began = time.perf_counter()
        method(self)
        spent.append(time.perf_counter() - began)

    with mock.patch.object(Handover, name, call):
        yield


def measure_hanging_server(steps: int) -> float:
    """Share of a run's time left when the server hangs."""
    durations: list[float] = []
    interval = duties.PUSH_INTERVAL_SECONDS / 30
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        stack.enter_context(mock.patch.dict(os.environ, {"MLFLOW_TRACKING_URI": uri}))
        stack.enter_context(mock.patch.object(duties, "PUSH_INTERVAL_SECONDS", interval))
        stack.enter_context(time_calls("begin", durations))
        stack.enter_context(time_calls("end", durations))
        start = time.perf_counter()
        overrides = ["+experiment=mog", f"steps={steps}", "eval_every=2000"]
        outcome = app.attempt(compose([*overrides, f"output_dir={folder}"]))
        total = time.perf_counter() - start
        assert outcome.code == 0, outcome.message
        (record,) = Path(folder).glob("mog/*/")
        assert read_marks(record, uri).run_id is None
    assert len(durations) > 2, "the run was too short"
    return 1 - sum(durations) / total


def measure_smoke_runs(rounds: int, report: Report) -> None:
    names = ("without", "the first run of a folder", "the next run of a folder")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as parent:
        ways = {name: run_smoke(parent, seed) for seed, name in enumerate(names)}
        parts = []
        for i in range(rounds):
            parts.append(report.time(ways, 1, warmups=0, clock=time.perf_counter))
            assert sync.main(["sync", "--output-dir", f"{parent}/{i}"]) == 0
    seconds = {name: np.concatenate([part[name] for part in parts]) for name in names}
    without = seconds["without"]
    for name in names[1:]:
        report.goals[name] = float(np.median(without) / (np.median(without) + ALLOWED))
        report.compare(name, seconds[name], without)


def measure(options: Namespace, report: Report) -> None:
    """Overhead of MLflow for a run: smoke runs with and without upload, and a hanging server.

        python -m scripts.benchmarks tracking

    Times are wall-clock times.  The first run of an output folder creates the database and starts the
    pusher; the next run uses both.  Each may take a second longer than without MLflow.  With a server
    that accepts connections and never responds, the share of time left to the run is measured: the
    calls of the handover, thirty times as often as usual, and the wait at the end are timed inside the
    run."""
    measure_smoke_runs(options.rounds, report)
    report.record(HANGING, [measure_hanging_server(options.steps)])
