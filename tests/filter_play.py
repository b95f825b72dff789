"""Components with their YAML's defaults, the problems that datasets load, and a score in standard errors."""

from __future__ import annotations

from pathlib import Path

import torch
from configured import component

from components.contracts.roles import Setting
from runner.run.rng import Streams


def load(name: str, seed: int = 0, replicates: int = 1, dtype: torch.dtype = torch.float64, **keys):
    """A dataset's problem and the streams it was drawn from."""
    rng = Streams(seed)
    setting = Setting(Path(), torch.device("cpu"), dtype, replicates, offline=True)
    return component("dataset", name, **keys).load(rng, setting), rng


def z_score(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """(mean − expected) in standard errors, over dimension 0."""
    return (values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5)
