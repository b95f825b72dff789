"""A toy task for sweeps by Optuna in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import hydra
import optuna
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

CONFIG = """
x: 0.0
y: 0.0
kind: plain
n: 1
objective: null
output_dir: {folder}
hydra:
  searchpath: [pkg://conf]
  output_subdir: null
  run: {{dir: .}}
defaults: [override hydra/job_logging: none, override hydra/hydra_logging: none, _self_]
"""


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., optuna.Study]:
    """Function that runs ``toy -m hydra/sweeper=optuna …`` in this process and returns the study."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text(CONFIG.format(folder=tmp_path))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # exceptions are propagated

    def go(task: Callable[[DictConfig], float], *arguments: str) -> optuna.Study:
        words = ["hydra/sweeper=optuna", "hydra.sweeper.study_name=toy", *arguments]
        if not any(word.startswith(("hydra.sweeper.objectives", "objective=")) for word in words):
            words.append("hydra.sweeper.direction=minimize")
        monkeypatch.setattr(sys, "argv", ["toy", "-m", f"hydra.sweep.dir={tmp_path}/out", *words])
        conf = str(tmp_path / "conf")
        try:
            hydra.main(config_path=conf, config_name="config", version_base="1.3")(task)()
        finally:
            GlobalHydra.instance().clear()
        return optuna.load_study(study_name="toy", storage=f"sqlite:///{tmp_path}/optuna.db")

    return go
