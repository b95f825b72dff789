"""Process settings changed by user code are restored; forbidden changes are rejected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from support.runs.configured import component, load

from components.contracts.plugins.process_settings import preserve_settings
from components.errors import NumericalError
from components.inference.chains import advance, init_chains
from runner.catalogue.plugins import import_plugins
from runner.execution.divergence import add_error_location


def change_process_settings(folder: Path) -> None:
    os.chdir(folder)
    torch.set_default_dtype(torch.float16)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)


def test_process_settings_are_restored(tmp_path):
    directory = Path.cwd()
    with preserve_settings():
        change_process_settings(tmp_path)
    assert Path.cwd() == directory
    assert torch.is_grad_enabled()
    assert (torch.ones(1).dtype, torch.ones(1).device.type) == (torch.float32, "cpu")


def test_folder_changed_by_plugin_is_restored(tmp_path, monkeypatch):
    (tmp_path / "moves_away.py").write_text("import os\nos.chdir('/')\n")
    monkeypatch.syspath_prepend(tmp_path)
    directory = Path.cwd()
    import_plugins(["moves_away"])
    assert Path.cwd() == directory


def test_chains_of_wrong_shape_are_refused():
    problem, rng = load("mixture_of_gaussians_2d")
    model = component("model", "target_density").build(problem, rng)
    state = init_chains(model, problem, None, 4, rng)
    with pytest.raises(ValueError, match=r"theta is \[1, 2\], .* \[4, 2\]"):
        advance(state, state.theta[:1], 0, 1)


def test_fix_names_only_keys_of_the_method():
    error = NumericalError("chains [0] became non-finite", "lower inference.step_size")
    keeps = component("inference", "mala")
    lacks = component("inference", "gibbs")
    assert add_error_location(error, 1, 0, keeps).mend == "lower inference.step_size"
    assert "check the scales of the data" in add_error_location(error, 1, 0, lacks).mend
