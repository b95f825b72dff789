"""Benchmarks of the overhead of records and checkpoints."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from components import registry
from runner.commands import app
from runner.compose.compose import compose
from runner.disk import atomic
from runner.disk.atomic import write_bytes
from runner.execution import checkpoint, duties
from runner.execution.course import Course
from runner.execution.duties import save_checkpoints
from runner.execution.loop import Step, StepCallback
from runner.execution.storage import blocks
from runner.tracking import sync
from scripts.benchmarks.harness import Report

WARMUP = 500
EVERY = 500
MODULES = (atomic, blocks, checkpoint)  # with ``write_bytes``
PARTS = 10
TIME = "time left to the sampler"
SHARE = "draws among the bytes written"
LOOP_CASE = "time left to steps of 1 ms"
STEP = 1e-3  # seconds


def assert_recorded(folder: Path) -> None:
    (record,) = (path.parent for path in folder.glob("mog/*/run.json"))
    lines = [json.loads(line) for line in (record / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["phase"] == "train" for line in lines) > 1, "nothing was recorded"
    assert any((record / "checkpoints").iterdir()), "no checkpoint was written"
    assert sync.main(["sync", "--output-dir", str(folder)]) == 0


class TimedSaving:
    """A run of HMC on a mixture that times its checkpoints."""

    def __init__(self, draws: int, every: int):
        self.saving: list[float] = []  # seconds of each saving step of the training thread
        self.ends: list[float] = [time.monotonic()]  # times at the end of steps
        self.cpu: list[float] = []  # CPU seconds of the process at the end of each step
        self.n_bytes = 0
        self.state: Any = None
        keys = {"inference.warmup": WARMUP, "steps": WARMUP + draws, "checkpoint_every": every}
        keys |= {"tracking": "false", "offline": "true", "figures": "false"}
        overrides = [f"{key}={value}" for key, value in keys.items()]
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            for module in MODULES:
                stack.enter_context(mock.patch.object(module, "write_bytes", self.write_bytes))
            stack.enter_context(mock.patch.object(duties, "save_checkpoints", self.save))
            words = ["+experiment=mog", "inference=hmc", *overrides, f"output_dir={folder}"]
            outcome = app.attempt(compose(words))
        assert outcome.code == 0, outcome.message

    def write_bytes(self, path: Path, content: bytes) -> None:
        self.n_bytes += len(content)
        write_bytes(path, content)

    @contextmanager
    def save(self, course: Course, kept: Callable[[Step], bool]) -> Iterator[StepCallback]:
        def timed_save(step: Step) -> None:
            start = time.monotonic()
            save(step)
            self.ends.append(time.monotonic())
            self.saving.append(self.ends[-1] - start)
            self.cpu.append(time.process_time())
            self.state = step.state

        with save_checkpoints(course, kept) as save:
            yield timed_save


def measure_saving(options: Namespace, report: Report) -> None:
    """Overhead of checkpoints for a run that keeps 100,000 draws of HMC on a mixture.

        python -m scripts.benchmarks saving --draws 5000

    A checkpoint every 500 steps is compared with the same run with one at its end; both must keep the
    same draws.  Ratios: the share of the training thread's wall-clock time left to the sampler, over
    the run and its extremes over tenths of the run; CPU seconds of the process, including background
    writes; and the share of draws in all bytes written."""
    plain, saved = (TimedSaving(options.draws, every) for every in (options.draws * 10, EVERY))
    assert torch.equal(plain.state.kept.rows, saved.state.kept.rows), "the draws differ"
    seconds = np.diff(saved.ends[1:])
    parts = zip(
        np.array_split(saved.saving[1:], PARTS), np.array_split(seconds, PARTS), strict=True
    )
    shares = [1 - float(saving.sum() / total.sum()) for saving, total in parts]
    time_left = 1 - sum(saved.saving[1:]) / float(seconds.sum())
    report.set_ratio(TIME, time_left, min(shares), max(shares))
    report.record("CPU", [np.ptp(plain.cpu) / np.ptp(saved.cpu)])
    history = [saved.state.kept.rows, *(trace.rows for trace in saved.state.stats.values())]
    report.record(SHARE, [sum(rows.nbytes for rows in history) / saved.n_bytes])


def measure_loop(options: Namespace, report: Report) -> None:
    """Overhead of a run per step: loop, record, checkpoints and MLflow, for steps of 1 ms.

        python -m scripts.benchmarks loop                 # 10,000 steps

    A run of ``+experiment=mog`` with tracking and without evaluations.  The overhead is the CPU time of
    the training thread from the end of a step to the beginning of the next; the ratio is the share of
    time left to steps of 1 ms, over tenths of the run."""
    # CPU seconds of the training thread at the beginning and end of each step
    stamps: list[float] = []
    sgld: Any = registry.get("inference", "sgld")
    original_step = sgld.step

    def timed_step(self: Any, *arguments: Any) -> Any:
        stamps.append(time.thread_time())
        result = original_step(self, *arguments)
        stamps.append(time.thread_time())
        return result

    overrides = ["+experiment=mog", f"steps={options.steps}", "eval_every=null"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        mock.patch.object(sgld, "step", timed_step),
    ):
        outcome = app.attempt(compose([*overrides, f"output_dir={folder}"]))
        assert outcome.code == 0, outcome.message
        assert_recorded(Path(folder))
    assert len(stamps) == 2 * options.steps
    gaps = np.subtract(stamps[2::2], stamps[1:-1:2])
    costs = [float(part.mean()) for part in np.array_split(gaps, PARTS)]
    print(f"{1e6 * statistics.median(costs):.1f} µs overhead per step")
    report.record(LOOP_CASE, [STEP / (STEP + cost) for cost in costs])
