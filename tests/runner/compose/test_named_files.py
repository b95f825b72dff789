"""Files and code that keys of components name: what a file holds is part of what a run is, and code
is named twice."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support.runs.configured import made_job

from components.errors import ConfigMismatchError
from runner.compose.data_state import data_state
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


def test_another_file_of_the_same_name_is_another_run(weights, tmp_path):
    asked = [*VICTIM, f"model.path={weights}", "model.network={name: mlp, widths: []}"]
    one, same = (made_job(tmp_path, *asked) for _ in range(2))
    assert one.config["model"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert one.signature == same.signature
    save_file({"0.weight": torch.ones(10, 64), "0.bias": torch.zeros(10)}, weights)
    other = made_job(tmp_path, *asked)
    assert other.signature != one.signature
    with pytest.raises(
        ConfigError,
        match=r"model.path=.*: has the SHA-256 .*model.sha256 asks for .*; put that file back",
    ):
        made_job(tmp_path, *asked, f"model.sha256={one.config['model']['sha256']}")
    assert (
        made_job(tmp_path, *asked, f"model.sha256={other.config['model']['sha256'][:12]}").signature
        == other.signature
    )


def test_so_it_is_of_a_surrogate_inside_an_attacker(weights, tmp_path):
    asked = ["dataset=digits", "model=mlp", "inference=map", "steps=1", "attacker=transfer", "attacker.inference=fixed",
             f"attacker.surrogate={{name: state_dict, path: {weights}, network: {{name: mlp, widths: []}}}}"]  # fmt: skip
    job = made_job(tmp_path, *asked)
    assert (
        job.config["attacker"]["surrogate"]["sha256"]
        == hashlib.sha256(weights.read_bytes()).hexdigest()
    )


def test_a_changed_table_of_ones_own_is_not_done_already(tmp_path):
    assert data_state("csv", tmp_path, True) is None
    assert data_state("csv_series", tmp_path, True) is None
    assert data_state("digits", tmp_path, True) == ""


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (VICTIM, "model.path: Missing mandatory value"),
        ([*VICTIM, "model.path=no.safetensors"], "model.path=no.safetensors: no such file; name one, whole or as seen from "),
        ([*VICTIM, "model.path=/"], "model.path=/: cannot be read (Is a directory)"),
        ([*NET, *OWN, "model.sha256=12345678"], "model.sha256: there is no file that it could be of; name one, model.path=…"),
        (NET, "model.class_path=own_things:Net: code that is not the runner's; add 'plugins=[own_things]' if you know it"),
        (["dataset=log_density", "dataset.function=own_things:fails", "dataset.dim=1", "model=target_density",
          "inference=sgld", "steps=9000"], "dataset.function=own_things:fails: code that is not the runner's; add"),
        (["dataset=log_density", "dataset.function=/x/own.py:f", "dataset.dim=1", "model=target_density", "inference=sgld",
          "steps=9000"], "/x/own.py is a file; write the module's name, dataset.function=own:f, and start the runner from"),
        (["dataset=digits", "model=mlp", "inference=map", "steps=1", "attacker=transfer",
          "attacker.surrogate={name: module, class_path: 'own_things:Net'}"],
         "attacker.surrogate.class_path=own_things:Net: code that is not the runner's; add 'plugins=[own_things]'"),
        ([*NET, *OWN, "model.class_path=own_things.Net"], "a module and a name in it; write it as own_things:Net"),
        ([*NET, "plugins=[own_things]", "model.class_path=own_things"], "model.class_path: own_things is no module"),
        ([*NET, *OWN, "inference=mean_field_vi", "steps=1"], "inference.estimator=local needs affine_layers, which"),
        ([*VICTIM, "model.path={w}", "model.network=igp"], "model.network: igp is no network that takes weights; use mlp, cnn"),
        ([*VICTIM, "model.path={w}", "dataset=diabetes", "model.network=cnn"], "model.network: model=cnn has no likelihood for "
         "the real labels"),
        ([*VICTIM, "model.path={w}", "inference=sgld", "model.network={name: vgg, depth: 7}", "steps=9000"],
         "inference=sgld needs log_joint, which model=state_dict lacks as configured; set model.network=mlp"),
    ],
)  # fmt: skip
def test_mistakes_are_said_in_a_line(asked, said, weights, tmp_path):
    with pytest.raises(ConfigError) as error:
        made_job(tmp_path, *(word.replace("{w}", str(weights)) for word in asked))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_does_not_fit_is_a_mistake_and_no_traceback(weights, tmp_path):
    job = made_job(tmp_path, *VICTIM, f"model.path={weights}")
    rng = Streams(0)
    with pytest.raises(
        ConfigMismatchError, match=r"1 layers of weights \(\[10, 64\]\), the network has 3"
    ):
        job.model.build(load_problem(job, rng), rng)
    assert Path(weights).exists()
