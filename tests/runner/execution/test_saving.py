"""Checkpoints are written sequentially in the background with the state at their step; a run waits
for the last one."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import pytest
import torch

from runner.execution import checkpoint
from runner.execution.costs import CostMeter
from runner.execution.duties import save_checkpoints
from runner.execution.loop import Step
from runner.execution.storage.blocks import RowBlocks
from runner.record.usage import UsageMeter


@pytest.fixture
def course():
    """The part of a run required for saving, which records its calls."""
    did: list[str] = []
    record = SimpleNamespace(
        folder=None,
        code={},
        flush=lambda: did.append("flushed"),
        sync=lambda: did.append("synced"),
        did=did,
    )
    return SimpleNamespace(
        job=SimpleNamespace(signature="s", inference=None),
        record=record,
        rng=SimpleNamespace(replicate=0, state=dict),
        seconds=0.0,
        received=[],
        stopping=False,
        blocks=RowBlocks(),
        meter=CostMeter(),
        usage=UsageMeter(),
    )


@pytest.fixture
def disk(monkeypatch, tmp_path, course):
    """Target of checkpoints, which blocks until ``ready``."""
    course.record.folder = tmp_path
    disk = SimpleNamespace(
        ready=Event(), asked=Event(), folder=tmp_path / "checkpoints", error=None
    )
    real = checkpoint.save_checkpoint

    def slowly(folder, taken, blocks):
        disk.asked.set()
        assert disk.ready.wait(20)
        if disk.error:
            raise disk.error
        course.record.did.append(f"wrote {taken.facts['step']}")
        return real(folder, taken, blocks)

    monkeypatch.setattr(checkpoint, "save_checkpoint", slowly)
    return disk


def step(number, state, last=False):
    return Step(number, state, {}, last, looked_at=True)


def always(_):
    return True


def test_steps_continue_while_the_earlier_state_is_written(course, disk):
    state = {"x": torch.zeros(3)}
    with save_checkpoints(course, always) as save:
        save(step(1, state))
        assert disk.asked.wait(20)
        state["x"] += 1  # the next step
        disk.ready.set()
    facts, tensors, _ = checkpoint.load_newest(disk.folder, "s")
    assert checkpoint.restore(facts, tensors, {"x": torch.ones(3)})[0]["x"].tolist() == [0, 0, 0]


def test_saves_are_sequential_and_follow_the_lines(course, disk):
    disk.ready.set()
    with save_checkpoints(course, always) as save:
        for number in (1, 2):
            save(step(number, {"x": torch.zeros(1)}))
        save(step(3, {"x": torch.zeros(1)}, last=True))
        assert course.record.did == [
            "flushed",
            "synced",
            "wrote 1",
            "flushed",
            "synced",
            "wrote 2",
            "flushed",
            "synced",
            "wrote 3",
        ]


def test_run_waits_for_the_save_after_a_signal(course, disk):
    disk.ready.set()
    course.received.append(15)
    with save_checkpoints(course, always) as save:
        save(step(1, {"x": torch.zeros(1)}))
        assert course.record.did[-1] == "wrote 1"


@pytest.mark.parametrize("last", [False, True])
def test_full_disk_is_reported(course, disk, last):
    disk.ready.set()
    disk.error = OSError(28, "No space left on device")
    with save_checkpoints(course, always) as save:
        if not last:
            save(step(1, {}))
        with pytest.raises(OSError, match="No space"):
            save(step(2, {}, last))
