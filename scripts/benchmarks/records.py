"""What records and checkpoints cost a run."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from argparse import Namespace
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from components import registry
from components.inference.chains import Chains
from runner.commands import app
from runner.compose.config import Job, prepare
from runner.compose.overrides import compose
from runner.disk import atomic
from runner.execution import checkpoint
from runner.execution.assembly import load_problem
from runner.execution.costs import CostMeter
from runner.execution.course import Course
from runner.execution.duties import checkpoint_rule, save_checkpoints
from runner.execution.execute import Run
from runner.execution.loop import Step, StepCallback, steps
from runner.execution.rng import Streams
from runner.execution.signals import ReceivedSignals
from runner.execution.storage import blocks
from runner.tracking import sync
from scripts.benchmarks.harness import Report

WARMUP, EVERY = 500, 500
MODULES = (atomic, blocks, checkpoint)  # with ``write_bytes``
PARTS = 10
TIME, SHARE = "time left to the sampler", "draws among the bytes written"
LOOP_CASE = "time left to steps of 1 ms"
STEP = 1e-3  # seconds


class Sampler:
    """Parts of a run before its first step."""

    def __init__(self, job: Job):
        self.job, self.rng = job, Streams(job.settings.seed, 0, torch.device("cpu"))
        self.problem = load_problem(job, self.rng)
        self.start: Any = job.inference.init(
            job.model.build(self.problem, self.rng), self.problem, self.rng
        )

    def run(self, duties: list[StepCallback]) -> tuple[Chains, list[float], float]:
        """The last state, the seconds that each step took, and the CPU seconds of all."""
        total = self.job.settings.steps or 0
        step = None
        stamps = [time.monotonic()]
        began = time.process_time()
        method, meter = self.job.inference, CostMeter()
        for step in steps(method, self.problem, self.start, self.rng, 0, total, meter):
            for duty in duties:
                duty(step)
            stamps.append(time.monotonic())
        assert step is not None
        return (
            step.state,
            [after - before for before, after in pairwise(stamps)],
            time.process_time() - began,
        )


def assert_equal(one: Chains, other: Chains) -> None:
    assert torch.equal(one.kept.rows, other.kept.rows), "the draws are not the same"
    assert one.stats.keys() == other.stats.keys()
    assert all(torch.equal(trace.rows, other.stats[name].rows) for name, trace in one.stats.items())


def seconds_between(stamps: list[float], steps: int) -> list[float]:
    """Seconds from the end of each step to the beginning of the next."""
    assert len(stamps) == 2 * steps
    return [after - before for before, after in zip(stamps[1::2], stamps[2::2], strict=False)]


def assert_recorded(folder: Path) -> None:
    (record,) = (path.parent for path in folder.glob("mog/*/run.json"))
    lines = [json.loads(line) for line in (record / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["phase"] == "train" for line in lines) > 1, "nothing was recorded"
    assert any((record / "checkpoints").iterdir()), "no checkpoint was written"
    assert sync.main(["sync", "--output-dir", str(folder)]) == 0


def prepare_job(draws: int, folder: str) -> Job:
    keys = {"inference.warmup": WARMUP, "steps": WARMUP + draws, "checkpoint_every": EVERY}
    keys |= {"tracking": "false", "offline": "true", "output_dir": folder}
    overrides = [f"{key}={value}" for key, value in keys.items()]
    return prepare(*compose(["+experiment=mog", "inference=hmc", *overrides]))


def sample_and_save(
    job: Job, sampler: Sampler
) -> tuple[Chains, list[float], float, list[float], int]:
    """Last state, seconds of the steps, CPU seconds, seconds of saving, and bytes written."""
    run = Run(job)
    context = Course(run, 0, ReceivedSignals())
    context.rng = sampler.rng
    sizes: list[int] = []
    saving: list[float] = []
    write_bytes = atomic.write_bytes

    def count_bytes(path: Path, content: bytes) -> None:
        sizes.append(len(content))
        write_bytes(path, content)

    with ExitStack() as stack:
        for module in MODULES:
            stack.enter_context(mock.patch.object(module, "write_bytes", count_bytes))
        save = stack.enter_context(save_checkpoints(context, checkpoint_rule(context)))

        def timed_save(step: Step) -> None:
            start = time.monotonic()
            save(step)
            saving.append(time.monotonic() - start)

        state, seconds, cpu = sampler.run([timed_save])
    run.record.close()
    return state, seconds, cpu, saving, sum(sizes)


def measure_saving(options: Namespace, report: Report) -> None:
    """Costs of checkpoints for a run that keeps everything: 100,000 draws of HMC on a mixture.

        python -m scripts.benchmarks saving --draws 5000

    A checkpoint every 500 steps, against the same run without any; both must keep the same draws, and
    the last checkpoint must restore them.  Ratios: the share of the training thread's wall-clock time
    that saving leaves to the sampler, in the whole run and its extremes over the tenths; CPU seconds of
    the process, writing in the background included; and the share of draws in all bytes written."""
    with tempfile.TemporaryDirectory() as folder:
        job = prepare_job(options.draws, folder)
        plain, _, cpu_without = Sampler(job).run([])
        state, seconds, cpu, saving, written = sample_and_save(job, Sampler(job))
        assert_equal(plain, state)
        newest = checkpoint.load_newest(job.folder / "checkpoints", job.signature)
        facts, tensors, complaints = newest or ({}, {}, [])
        assert not complaints
        assert_equal(plain, checkpoint.restore(facts, tensors, Sampler(job).start)[0])
    parts = zip(np.array_split(saving, PARTS), np.array_split(seconds, PARTS), strict=True)
    shares = [1 - float(saved.sum() / total.sum()) for saved, total in parts]
    report.set_ratio(TIME, 1 - sum(saving) / sum(seconds), min(shares), max(shares))
    report.record("CPU", [cpu_without / cpu])
    history = [state.kept.rows, *(trace.rows for trace in state.stats.values())]
    report.record(SHARE, [sum(rows.nbytes for rows in history) / written])


def measure_loop(options: Namespace, report: Report) -> None:
    """Costs of a run beside its steps: loop, record, checkpoints and MLflow, for steps of a
    millisecond.

        python -m scripts.benchmarks loop                 # 10,000 steps

    An ordinary run of ``+experiment=mog`` with tracking, as configured but for evaluations.  The cost
    is the CPU time of the training thread from the end of a step to the beginning of the next, less
    that of a bare ``for`` over the same steps; the ratio is the share of its time that it would leave
    to steps of a millisecond, over the tenths of the run."""
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
    report.record(LOOP_CASE, [STEP / (STEP + cost) for cost in costs])
