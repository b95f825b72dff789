"""Components, problems and steps shared by benchmarks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import yaml

from components import registry
from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.problems.supervised import Supervised
from runner.disk import conf_folders
from runner.execution.rng import Streams


def component(role: str, name: str, **keys: Any) -> Any:
    """Component with the defaults of its YAML, except for ``keys``."""
    path = conf_folders.find(role, name)
    assert path is not None
    cls = registry.get(role, name)
    defaults = yaml.safe_load(path.read_text(encoding="utf-8"))
    threat_keys = getattr(cls, "threat_keys", ())
    return cls.model_validate({k: v for k, v in defaults.items() if k not in threat_keys} | keys)


def load(name: str, seeds: int = 1, seed: int = 0, dtype: Any = torch.float64, **keys: Any) -> Any:
    """Problem of a dataset component, from the user's data folder and without network access."""
    folder = Path(os.environ.get("RUNNER_DATA_DIR", "data"))
    setting = Setting(folder, torch.device("cpu"), dtype, seeds, offline=True)
    return component("dataset", name, **keys).load(Streams(seed), setting)


def train(method: Any, model: Any, problem: Any, rng: Any, steps: int) -> Any:
    """State of an inference method after a number of steps on its batches."""
    state = method.init(model, problem, rng)
    for _, batch in problem.batches(method.requires.batch_kind, rng, 0, steps):
        state, _ = method.step(state, batch, rng)
    return state


def regression(x: Any, y: Any, batch_size: int | None = None) -> Supervised:
    """Problem with real labels y [N, 1]; its test rows are the training rows."""
    rows = Batch(x, y, torch.ones(len(x), 1, dtype=torch.bool), 1.0)
    return Supervised("bench", "real", rows, rows, batch_size, task_names=["y"])


def noise_regression(
    rows: int, inputs: int, batch_size: int, rng: Streams, dtype: Any = torch.float64
) -> tuple[Supervised, Batch]:
    """Independent standard normal inputs and labels, and one minibatch."""
    x = torch.randn(rows, inputs, generator=rng.data, dtype=dtype)
    problem = regression(x, torch.randn(rows, 1, generator=rng.data, dtype=dtype), batch_size)
    return problem, next(iter(problem.batches("minibatch", rng, 0, 1)))[1]
