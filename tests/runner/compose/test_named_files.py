"""Files and code in keys of components: the content of a file is part of a run's identity, and code
must be named twice."""

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support.runs.configured import made_job

from components.errors import ConfigMismatchError
from runner.catalogue.declarations import data_state
from runner.errors import ConfigError
from runner.execution.assembly import load_problem
from runner.execution.rng import Streams

VICTIM = ["dataset=digits", "model=state_dict", "inference=fixed"]
NET = ["dataset=digits", "model=module", "model.class_path=own_things:Net", "inference=fixed"]
OWN = ["plugins=[own_things]"]


@pytest.fixture
def weights(tmp_path):
    file = tmp_path / "w.safetensors"
    save_file({"0.weight": torch.zeros(10, 64), "0.bias": torch.zeros(10)}, file)
    return file


def test_changed_file_of_equal_name_is_another_run(weights, tmp_path):
    asked = [*VICTIM, f"model.path={weights}", "model.network={name: mlp, widths: []}"]
    first, same = (made_job(tmp_path, *asked) for _ in range(2))
    assert first.config["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert first.signature == same.signature
    save_file({"0.weight": torch.ones(10, 64), "0.bias": torch.zeros(10)}, weights)
    other = made_job(tmp_path, *asked)
    assert other.signature != first.signature
    with pytest.raises(
        ConfigError,
        match=r"model.path=.* SHA-256 .*model.sha256 .*; restore that file",
    ):
        made_job(tmp_path, *asked, f"model.sha256={first.config['model']['sha256']}")
    assert (
        made_job(tmp_path, *asked, f"model.sha256={other.config['model']['sha256'][:12]}").signature
        == other.signature
    )


def test_changed_file_of_a_surrogate_is_another_run(weights, tmp_path):
    asked = [
        "dataset=digits",
        "model=mlp",
        "inference=map",
        "steps=1",
        "attacker=transfer",
        "attacker.inference=fixed",
        f"attacker.surrogate={{name: state_dict, path: {weights}, network: {{name: mlp, widths: []}}}}",
    ]
    job = made_job(tmp_path, *asked)
    assert (
        job.config["attacker"]["surrogate"]["sha256"]
        == hashlib.sha256(weights.read_bytes()).hexdigest()
    )


def test_changed_user_table_is_not_a_finished_run(tmp_path):
    assert data_state("csv", tmp_path, True) is None
    assert data_state("csv_series", tmp_path, True) is None
    assert data_state("digits", tmp_path, True) == ""


def test_mismatched_file_causes_no_traceback(weights, tmp_path):
    job = made_job(tmp_path, *VICTIM, f"model.path={weights}")
    rng = Streams(0)
    with pytest.raises(ConfigMismatchError, match=r"1 layers .*\[10, 64\].* has 3 .*; set"):
        job.model.build(load_problem(job, rng), rng)
    assert Path(weights).exists()
