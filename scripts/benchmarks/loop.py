"""Costs of a run beside its steps: loop, record, checkpoints and MLflow, for steps of a
millisecond.

    python -m scripts.benchmarks loop                 # 10,000 steps

An ordinary run of ``+experiment=mog`` with tracking, as configured but for evaluations.  The cost
is the CPU time of the training thread from the end of a step to the beginning of the next, less
that of a bare ``for`` over the same steps; the ratio is the share of its time that it would leave
to steps of a millisecond, over the tenths of the run."""

from __future__ import annotations

import statistics
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from components import registry
from runner.commands import app
from runner.compose.overrides import compose
from scripts.benchmarks.harness import Report
from scripts.benchmarks.saved_run import assert_recorded, seconds_between

CASE = "time left to steps of 1 ms"
STEP, PARTS = 1e-3, 10


def measure(options: Namespace, report: Report) -> None:
    # CPU seconds of the training thread at the beginning and at the end of each step
    stamps: list[float] = []
    first: list[Any] = []  # the method, and the arguments of its first step
    sgld: Any = registry.get("inference", "sgld")
    original_step = sgld.step

    def timed_step(self: Any, *arguments: Any) -> Any:
        if not first:
            first.extend((self, *arguments))
        begin = time.thread_time()
        result = original_step(self, *arguments)
        stamps.extend((begin, time.thread_time()))
        return result

    overrides = ["+experiment=mog", f"steps={options.steps}", "eval_every=null"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        mock.patch.object(sgld, "step", timed_step),
    ):
        outcome = app.attempt(*compose([*overrides, f"output_dir={folder}"]))
        assert outcome.code == 0, outcome.message
        assert_recorded(Path(folder))
    gaps = seconds_between(stamps, options.steps)
    stamps.clear()
    method, state, batch, rng = first
    with mock.patch.object(sgld, "step", timed_step):
        for _ in range(options.steps):
            state, info = method.step(state, batch, rng)
    assert set(info) == {"log_joint", "grad_norm", "step_size", "draws"}
    bare = statistics.fmean(seconds_between(stamps, options.steps))
    parts = np.array_split(gaps, PARTS)
    costs = [max(statistics.fmean(part) - bare, 0.0) for part in parts]
    print(
        f"{1e6 * statistics.median(costs):.1f} µs beside each step, bare loop {1e6 * bare:.1f} µs"
    )
    report.record(CASE, [STEP / (STEP + cost) for cost in costs])
