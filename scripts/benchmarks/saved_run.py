"""A run's parts and its checkpoints, for the benchmark of saving."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from components.inference.chains import Chains
from runner.compose.config import Job, prepare
from runner.compose.overrides import compose
from runner.disk import atomic
from runner.execution import blocks, checkpoint
from runner.execution.assembly import load_problem
from runner.execution.blocks import RowBlocks
from runner.execution.costs import CostMeter
from runner.execution.duties import ReplicateContext, checkpoint_rule, save_checkpoints
from runner.execution.loop import Step, StepCallback, steps
from runner.execution.rng import Streams
from runner.execution.scores import StepTrace
from runner.execution.screen.announcements import Announcements
from runner.execution.screen.progress import Live
from runner.execution.signals import ReceivedSignals
from runner.execution.watch import Watch
from runner.record.record import Record
from runner.tracking import sync


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


WARMUP, EVERY = 500, 500


MODULES = (atomic, blocks, checkpoint)  # with ``write_bytes``


def prepare_job(draws: int, folder: str) -> Job:
    keys = {"inference.warmup": WARMUP, "steps": WARMUP + draws, "checkpoint_every": EVERY}
    keys |= {"tracking": "false", "offline": "true", "output_dir": folder}
    overrides = [f"{key}={value}" for key, value in keys.items()]
    return prepare(*compose(["+experiment=mog", "inference=hmc", *overrides]))


def sample_and_save(
    job: Job, sampler: Sampler
) -> tuple[Chains, list[float], float, list[float], int]:
    """Last state, seconds of the steps, CPU seconds, seconds of saving, and bytes written."""
    record = Record.open(job)
    screen = (Live(job.settings.steps, 1), Announcements(), ReceivedSignals(), Watch(job))
    parts = (job, record, None, sampler.problem, sampler.rng, *screen)
    rest = (CostMeter(), job.settings.steps, 0.0, RowBlocks(), StepTrace(frozenset()))
    context = ReplicateContext(*parts, *rest)
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
    context.live.stop()
    record.close()
    return state, seconds, cpu, saving, sum(sizes)
