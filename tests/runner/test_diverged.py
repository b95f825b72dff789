"""A sampler whose step size is too large, seen from the command line: state, message, and the checkpoint that is kept."""

from __future__ import annotations

import sys

import pytest
import torch

from runner import cli
from runner.record import record
from runner.run import checkpoint


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Runs a command line in this process: (exit code, stderr)."""

    def run(*argv: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["runner", *argv, "tracking=false", f"output_dir={tmp_path}"])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        return int(exit_.value.code or 0), capfd.readouterr().err.strip()

    return run


def test_a_step_size_too_large(command, tmp_path):
    argv = ["+experiment=mog", "inference.step_size=5.0", "checkpoint_every=5"]
    code, error = command(*argv)
    assert code == 1
    assert error.startswith("diverged: step ")
    assert error.endswith("; lower inference.step_size; the last good checkpoint is kept")
    assert "left the finite numbers" in error
    assert len(error.splitlines()) == 1
    (folder,) = record.runs(tmp_path)
    facts = record.read(folder)
    assert facts["state"] == "diverged"
    assert facts["error"] in error
    step = int(error.split("step ")[1].split(",")[0])
    found = checkpoint.load_newest(folder / "checkpoints", facts["signature"])
    assert found is not None
    kept, tensors, complaints = found
    assert complaints == []
    assert kept["step"] == (step - 1) // 5 * 5  # the last one before
    assert all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point())
    assert command(*argv)[1] == error  # goes on from there, and says the same
    assert command("+experiment=mog", "smoke=true")[0] == 0  # a good step size is another run
