"""Divergence of a sampler with too large a step size, from the command line: state, message, and
kept checkpoint."""

from __future__ import annotations

import math

import pytest
import torch

from components.metrics import regression
from runner.execution import checkpoint
from runner.record import folders
from runner.record.facts import read
from runner.record.scores import read_scores


@pytest.fixture
def command(tmp_path, command_line):
    """Function that runs a command line and returns exit code and errors."""

    def run(*argv: str) -> tuple[int, str]:
        code, _, error = command_line(*argv, "tracking=false", f"output_dir={tmp_path}")
        return code, error

    return run


def find_diverged(outputs):
    """Folder and facts of the only run, which diverged."""
    (folder,) = folders.runs(outputs)
    facts = read(folder)
    assert facts["state"] == "diverged"
    return folder, facts


def test_too_large_step_size_is_reported(command, tmp_path):
    argv = ["+experiment=mog", "inference.step_size=5.0", "checkpoint_every=5"]
    code, error = command(*argv)
    assert code == 1
    assert error.startswith("diverged: step ")
    assert error.endswith("; lower inference.step_size; the last good checkpoint is kept")
    assert "became non-finite" in error
    assert len(error.splitlines()) == 1
    folder, facts = find_diverged(tmp_path)
    assert facts["error"] in error
    step = int(error.split("step ")[1].split(",")[0])
    kept, tensors, complaints = checkpoint.load_newest(folder / "checkpoints", facts["signature"])
    assert complaints == []
    assert kept["step"] == (step - 1) // 5 * 5  # the last checkpoint before divergence
    assert all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point())
    assert command(*argv)[1] == error  # resumes from there, with the same message
    assert command("+experiment=mog", "smoke=true")[0] == 0  # a good step size is another run


def test_singular_step_is_reported(command, tmp_path):
    code, error = command(
        "+experiment=funnel_vis",
        "inference.kernel=sgd",
        "inference.entropy=jacobian",
        "inference.eta=5",
    )
    assert code == 1
    assert len(error.splitlines()) == 1
    assert error.startswith(
        "diverged: step 1, replicate 1: inference.eta=5 is too large for entropy=jacobian: "
    )
    assert "; lower inference.eta (below 0.4" in error
    find_diverged(tmp_path)


def test_implicit_posterior_with_nan_weights_is_reported(command, tmp_path):
    code, error = command(
        "+experiment=aadm_toy", "smoke=true", "inference.lr=1e30", "checkpoint_every=1"
    )
    assert code == 1
    assert error.startswith("diverged: step 2, replicate 1: objective is ")
    assert error.endswith("; lower inference.lr (now 1e+30); the last good checkpoint is kept")
    folder, facts = find_diverged(tmp_path)
    kept, _, complaints = checkpoint.load_newest(folder / "checkpoints", facts["signature"])
    assert complaints == []
    assert kept["step"] == 1, "none of the steps after it"


def test_non_finite_scores_end_as_diverged_and_are_kept(command, tmp_path, monkeypatch):
    honest = regression.scores
    monkeypatch.setattr(regression, "scores", lambda *given: honest(*given) | {"nlpp": math.inf})
    argv = ["+experiment=bnn_uci", "smoke=true", "steps=8", "inference.burn_in=2", "replicates=2"]
    code, error = command(*argv)
    assert code == 1
    assert error == (
        "diverged: scores are not finite: nlpp inf, log_likelihood -inf, in 2 of 2 replicates; "
        "lower inference.step_size (now 0.002) or check the scales of the data and of the model's prior; the last good "
        "checkpoint is kept"
    )
    folder, facts = find_diverged(tmp_path)
    assert facts["result"]["nlpp"] == [math.inf] * 2
    assert all(math.isfinite(value) for value in facts["result"]["rmse"])
    assert read_scores(facts, folder, "rmse") == {
        (0, r): value for r, value in enumerate(facts["result"]["rmse"])
    }
    assert command(*argv) == (code, error)  # the same message, without a new computation
    assert read(folder)["finished"] == facts["finished"]
