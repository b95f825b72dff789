"""Draws are written once, to blocks shared by checkpoints; damaged or missing blocks are detected."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import pytest
import torch
from support.runs.configured import repeatable

from components.contracts.traces import Trace
from runner.execution import checkpoint
from runner.execution.execute import run
from runner.execution.storage import blocks
from runner.execution.storage.blocks import RowBlocks


@dataclasses.dataclass
class Chain:
    theta: torch.Tensor
    kept: Trace = dataclasses.field(default_factory=Trace)
    stats: defaultdict[str, Trace] = dataclasses.field(default_factory=lambda: defaultdict(Trace))

    def go(self, steps):
        for _ in range(steps):
            self.theta = self.theta * 1.01 + 1
            self.kept.append(self.theta)
            if len(self.kept) > 20:  # may start later
                self.stats["lp"].append(self.theta.sum())


def fresh():
    return Chain(torch.arange(6.0).view(2, 3))


def save(folder, chain, step, held, replicate=0):
    facts = {"step": step, "replicate": replicate, "seconds": 0.0, "signature": "s"}
    return checkpoint.save_checkpoint(folder, checkpoint.snapshot(chain, {}, facts), held)


def load(folder):
    facts, tensors, complaints = checkpoint.load_newest(folder, "s")
    return (checkpoint.restore(facts, tensors, fresh())[0] if facts else None), facts, complaints


def names(folder):
    return sorted(path.name for path in folder.glob("block-*"))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(
        blocks, "BLOCK_BYTES", 400
    )  # bytes: 16 rows of 24, before there are statistics


def same(restored, chain):
    assert torch.equal(restored.theta, chain.theta)
    assert len(restored.kept) == len(chain.kept)
    assert not len(chain.kept) or torch.equal(restored.kept.rows, chain.kept.rows)
    assert restored.stats.keys() == chain.stats.keys()
    assert all(
        torch.equal(restored.stats[name].rows, trace.rows) for name, trace in chain.stats.items()
    )


@pytest.mark.parametrize("steps", [0, 7, 20, 60, 103])
def test_restored_samples_equal_the_kept_ones_and_continue(tmp_path, small, steps):
    chain = fresh()
    held = RowBlocks()
    for step in range(10, steps + 1, 10):
        chain.go(10)
        save(tmp_path, chain, step, held)
    chain.go(steps % 10)
    save(tmp_path, chain, steps, held)
    loaded, facts, complaints = load(tmp_path)
    assert not complaints
    same(loaded, chain)
    # the same blocks, extended by either
    for state, blocks_of in ((chain, held), (loaded, facts["blocks"])):
        folder = tmp_path / ("one" if state is chain else "other")
        folder.mkdir()
        for path in tmp_path.glob("*.*"):
            (folder / path.name).write_bytes(path.read_bytes())
        state.go(30)
        save(folder, state, steps + 30, blocks_of)
    same(load(tmp_path / "one")[0], load(tmp_path / "other")[0])
    assert names(tmp_path / "one") == names(tmp_path / "other")
    for name in names(tmp_path / "one"):  # byte for byte: checkpoints hold its checksum
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_every_row_is_written_to_one_block(tmp_path, small, monkeypatch):
    written = []
    monkeypatch.setattr(
        blocks,
        "write_bytes",
        lambda path, content: (written.append(len(content)), path.write_bytes(content)),
    )
    chain = fresh()
    held = RowBlocks()
    largest = 0
    for step in range(10, 610, 10):
        chain.go(10)
        largest = max(largest, save(tmp_path, chain, step, held).stat().st_size)
    rows = sum(trace.rows.nbytes for trace in (chain.kept, chain.stats["lp"]))
    assert largest < 1000  # independent of the number of kept draws
    assert len(written) <= rows / blocks.BLOCK_BYTES
    assert rows < sum(written) < rows + 400 * len(written)  # plus one header each
    assert (tmp_path / "r0000-s000000600.json").stat().st_size < 1000


def test_checkpoints_share_blocks_and_survive_damage(tmp_path, small):
    chain = fresh()
    held = RowBlocks()
    for step in (20, 40):
        chain.go(20)
        save(tmp_path, chain, step, held)
    assert names(tmp_path) == [
        "block-r0000-s000000020.safetensors",
        "block-r0000-s000000040.safetensors",
    ]
    content = bytearray((tmp_path / names(tmp_path)[1]).read_bytes())
    content[-3] ^= 1
    (tmp_path / names(tmp_path)[1]).write_bytes(content)
    loaded, facts, complaints = load(tmp_path)
    assert len(complaints) == 1
    assert "block-r0000-s000000040" in complaints[0]
    assert facts["step"] == 20
    assert len(loaded.kept) == 20
    loaded.go(20)
    save(tmp_path, loaded, 40, facts["blocks"])  # damaged blocks are written again
    same(load(tmp_path)[0], chain)


@pytest.mark.parametrize("damage", ["gone", "cut", "swapped"])
def test_lost_early_block_is_never_skipped(tmp_path, small, damage):
    chain = fresh()
    held = RowBlocks()
    for step in (20, 40, 60):
        chain.go(20)
        save(tmp_path, chain, step, held)
    first, second, _ = (tmp_path / name for name in names(tmp_path))
    if damage == "gone":
        first.unlink()
    elif damage == "cut":
        first.write_bytes(first.read_bytes()[:-8])
    else:
        first.write_bytes(second.read_bytes())
    loaded, _, complaints = load(tmp_path)
    assert loaded is None
    assert len(complaints) == 2
    assert all("block-r0000-s000000020" in complaint for complaint in complaints)


def test_block_without_a_checkpoint_is_ignored_and_removed(tmp_path, small, monkeypatch):
    chain = fresh()
    held = RowBlocks()
    chain.go(20)
    save(tmp_path, chain, 20, held)
    chain.go(20)
    with monkeypatch.context() as killed:
        # after the block
        killed.setattr(checkpoint, "save", lambda _: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            save(tmp_path, chain, 40, held)
    assert len(names(tmp_path)) == 2
    loaded, facts, complaints = load(tmp_path)
    assert (facts["step"], complaints) == (20, [])
    loaded.go(5)
    save(tmp_path, loaded, 25, facts["blocks"])
    assert names(tmp_path) == ["block-r0000-s000000020.safetensors"]


def test_blocks_are_removed_with_their_last_checkpoint(tmp_path, small):
    for replicate in (0, 1):
        chain = fresh()
        held = RowBlocks()
        for step in (20, 40):
            chain.go(20)
            save(tmp_path, chain, step, held, replicate)
            assert {name[6:11] for name in names(tmp_path)} == (
                {"r0000", "r0001"} if (replicate, step) == (1, 20) else {f"r000{replicate}"}
            )


GAME = ["+experiment=friend_or_foe", "smoke=true", "checkpoint_every=10"]


def test_run_with_blocks_gives_the_same_numbers(make_job, monkeypatch):
    job = make_job(*GAME)
    whole = run(job)[1]
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    again = run(make_job(*GAME, "fresh=true"))[1]
    assert repeatable(again) == repeatable(whole)
    facts, tensors, _ = checkpoint.load_newest(job.folder / "checkpoints", job.signature)
    assert len(names(job.folder / "checkpoints")) == facts["step"] // 10
    assert len(tensors["state.standing.rewards"]) == facts["step"]
