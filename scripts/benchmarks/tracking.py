"""Costs of MLflow for a run: smoke runs pushed or not, and a server that never answers.

    python -m scripts.benchmarks tracking

Wall clock.  The first run of an output folder finds no database and no pushing process; the next
one finds both.  Each may take a second longer than without.  Of a run with a server that accepts
connections and never answers, the share of its time left to it is measured: the calls that hand it
over, thirty times as often as usual, and the wait at its end are timed inside the run."""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace

import numpy as np

from runner.tracking import sync
from scripts.benchmarks.harness import Report
from scripts.benchmarks.tracked_runs import measure_hanging_server, run_smoke

ALLOWED = 1.0  # seconds
HANGING = "a server that never answers"


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
    measure_smoke_runs(options.rounds, report)
    report.record(HANGING, [measure_hanging_server(options.steps)])
