"""Checkpoints that move between devices, as far as testable on a CPU."""

from __future__ import annotations

import pytest
import torch

from runner.commands import resume
from runner.errors import ConfigError
from runner.execution import checkpoint
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.execution.signals import RunInterruptedError
from runner.execution.storage.packing import unpack
from runner.record.facts import read

GAME = ("+experiment=friend_or_foe", "smoke=true", "checkpoint_every=10", "eval_every=20")
META = torch.device("meta")  # a mock accelerator, which accepts tensors but returns none


def test_tensors_move_to_the_device_of_the_fresh_state():
    tensors = {"a": torch.ones(2), "b": torch.ones(2), "c": torch.ones(2)}
    packed = {
        "d": [
            [{"v": "known"}, {"t": "a"}],
            [{"v": "new"}, {"g": "b"}],
            [{"v": "of the cpu"}, {"t": "c"}],
        ]
    }
    unpacked = unpack(packed, tensors, {"known": torch.zeros(2, device=META)}, META)
    assert [unpacked[name].device.type for name in ("known", "new", "of the cpu")] == [
        "meta",
        "meta",
        "cpu",
    ]
    back = unpack(packed, tensors, {"known": torch.zeros(2)})
    assert {tensor.device.type for tensor in back.values()} == {"cpu"}


def of_a_gpu(streams: Streams) -> dict[str, torch.Tensor]:
    """States in CUDA's form (seed and offset, 16 bytes), except for the two streams on the CPU."""
    return {
        n: s if n in ("data", "init") else torch.zeros(16, dtype=torch.uint8)
        for n, s in streams.state().items()
    }


def test_stream_of_another_device_restarts_from_seed_and_step():
    on_cpu = Streams(1)
    on_cpu.data.seed()
    other = Streams(1)
    two = Streams(1)
    later = Streams(1)
    fresh = Streams(1)
    assert other.restore(of_a_gpu(on_cpu), 7)
    two.restore(of_a_gpu(on_cpu), 7)
    later.restore(of_a_gpu(on_cpu), 8)
    assert not fresh.restore(Streams(1).state(), 7)
    numbers = [
        torch.rand(3, generator=streams.noise).tolist() for streams in (other, two, later, fresh)
    ]
    assert numbers[0] == numbers[1]
    assert len({tuple(values) for values in numbers}) == 3
    # always on the CPU
    assert torch.equal(other.data.get_state(), on_cpu.data.get_state())


def test_run_resumes_on_another_device_and_reports_it(make_job, monkeypatch, capsys):
    job = make_job(*GAME)

    def stop(step, _):
        raise RunInterruptedError(15, step)

    with pytest.raises(RunInterruptedError):
        run(job, stop)  # at the evaluation of step 20: the newest checkpoint is from step 10
    with pytest.raises(ConfigError, match="--device=gpu: must be cpu, cuda"):
        resume.main(["resume", str(job.folder), "--device", "gpu"])
    if not torch.cuda.is_available():
        assert resume.main(["resume", str(job.folder), "--device", "cuda"]) == 2
        assert "device=cuda: no GPU found" in capsys.readouterr().err
    real = checkpoint.restore

    def restore(*given):
        state, _ = real(*given)
        return state, of_a_gpu(Streams(0))

    monkeypatch.setattr(checkpoint, "restore", restore)
    assert resume.main(["resume", str(job.folder), "--device", "cpu"]) == 0
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "done"
    assert facts["moved"] == [{"replicate": 0, "step": 10, "device": "cpu"}]
    assert "random numbers after step 10 come from cpu" in capsys.readouterr().out
