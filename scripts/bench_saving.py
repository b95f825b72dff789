"""What checkpoints cost a run that keeps everything: 100,000 draws of HMC on the mixture of
Gaussians, a checkpoint every 500 steps, against the same run without any.

    python -m scripts.bench_saving                # some minutes, one JSON line
    python -m scripts.bench_saving --draws 5000

Both are asserted to have kept the same draws, and the last checkpoint to give them back.  The ratio
is the share of the training thread's time (wall clock: a disk's answer is waited for) that saving
leaves to the sampler, in the whole run and in each tenth of it, since what a checkpoint costs must
not grow with the draws; the CPU seconds of the whole process, writing beside the steps included,
against those without; and the share that draws have of all bytes written."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

from components.inference.chains import Chains
from runner.compose.config import Job, prepare
from runner.compose.overrides import compose
from runner.disk import atomic
from runner.execution import blocks, checkpoint
from runner.execution.assembly import load_problem
from runner.execution.blocks import RowBlocks
from runner.execution.duties import ReplicateContext, checkpoint_rule, save_checkpoints
from runner.execution.loop import Step, StepCallback, steps
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from runner.execution.screen.announcements import Announcements
from runner.execution.screen.progress import Live
from runner.execution.signals import ReceivedSignals
from runner.execution.watch import Watch
from runner.record.record import Record

WARMUP, EVERY, PARTS = 500, 500, 10
GOALS = {"time left to the sampler": 0.98, "draws among the bytes written": 1 / 3}


def job(draws: int, folder: str) -> Job:
    overrides = ["+experiment=mog", "inference=hmc", f"inference.warmup={WARMUP}", f"steps={WARMUP + draws}",
             f"checkpoint_every={EVERY}", "tracking=false", "offline=true", f"output_dir={folder}"]  # fmt: skip
    return prepare(*compose(overrides))


class Sampler:
    """A run's parts, at its beginning."""

    def __init__(self, job: Job):
        self.job, self.rng = job, Streams(job.settings.seed, 0, torch.device("cpu"))
        self.problem = load_problem(job, self.rng)
        self.start: Any = job.inference.init(
            job.model.build(self.problem, self.rng), self.problem, self.rng
        )

    def go(self, duties: list[StepCallback]) -> tuple[Chains, list[float], float]:
        """The last state, the seconds that each step took, and the CPU seconds of all."""
        total, step, stamps, began = (
            self.job.settings.steps or 0,
            None,
            [time.monotonic()],
            time.process_time(),
        )
        for step in steps(self.job.inference, self.problem, self.start, self.rng, 0, total):
            for duty in duties:
                duty(step)
            stamps.append(time.monotonic())
        assert step is not None
        return (
            step.state,
            [after - before for before, after in pairwise(stamps)],
            time.process_time() - began,
        )


def same(one: Chains, other: Chains) -> None:
    assert torch.equal(one.kept.rows, other.kept.rows), "the draws are not the same"
    assert one.stats.keys() == other.stats.keys()
    assert all(torch.equal(trace.rows, other.stats[name].rows) for name, trace in one.stats.items())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100_000)
    draws = parser.parse_args().draws
    keep_freed_memory()
    torch.set_num_threads(1)
    written = 0

    def counted(path: Path, content: bytes) -> None:
        nonlocal written
        written += len(content)
        write_bytes(path, content)

    write_bytes = atomic.write_bytes
    with tempfile.TemporaryDirectory() as folder:
        this = job(draws, folder)
        plain, without, cpu_without = Sampler(this).go([])
        record, sampler, save_seconds = Record.open(this), Sampler(this), [0.0]
        course = ReplicateContext(this, record, None, sampler.problem, sampler.rng, Live(len(without), 1), Announcements(),
                        ReceivedSignals(), Watch(this), draws, 0.0, RowBlocks())  # fmt: skip
        with (
            mock.patch.object(atomic, "write_bytes", counted),
            mock.patch.object(blocks, "write_bytes", counted),
            mock.patch.object(checkpoint, "write_bytes", counted),
            save_checkpoints(course, checkpoint_rule(course)) as save,
        ):

            def timed(step: Step[Any]) -> None:
                began = time.monotonic()
                save(step)
                save_seconds.append(time.monotonic() - began)

            state, seconds, cpu = sampler.go([timed])
        course.live.stop()
        record.close()
        same(plain, state)
        facts, tensors, complaints = checkpoint.load_newest(
            this.folder / "checkpoints", this.signature
        ) or ({}, {}, [])
        assert not complaints
        same(plain, checkpoint.restore(facts, tensors, Sampler(this).start)[0])
    history: list[Tensor] = [state.kept.rows, *(trace.rows for trace in state.stats.values())]
    kept_bytes = sum(rows.nbytes for rows in history)
    del save_seconds[0]
    size = -(-len(seconds) // PARTS)
    parts = [slice(start, start + size) for start in range(0, len(seconds), size)]
    shares = [1 - sum(save_seconds[part]) / sum(seconds[part]) for part in parts]
    share = kept_bytes / written
    print(f"{draws} draws of {len(state.theta)} chains: {sum(without):.1f} s without checkpoints, {sum(seconds):.1f} s with "
          f"{len(seconds) // EVERY}, of which {sum(save_seconds):.2f} s "
          f"({100 * sum(save_seconds) / sum(seconds):.2f} %) in saving; "
          f"{kept_bytes / 1e6:.0f} MB kept, {written / 1e6:.0f} MB written")  # fmt: skip
    ratios = {
        "time left to the sampler": [
            1 - sum(save_seconds) / sum(seconds),
            min(shares),
            max(shares),
        ],
        "CPU": [cpu_without / cpu] * 3,
        "draws among the bytes written": [share, share, share],
    }
    print(
        json.dumps(
            {"benchmark": "saving", "peer": "no checkpoints", "ratios": ratios, "goals": GOALS}
        )
    )


if __name__ == "__main__":
    main()
