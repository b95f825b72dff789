"""Run-level keys and the identity of a run, without torch."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from runner.errors import ConfigError

Values = dict[str, Any]  # a config, or the mapping of a component
# PyTorch's names of accelerators: NVIDIA and AMD, Apple, Intel.
ACCELERATORS = ["cuda", "mps", "xpu"]

# Keys that cannot change a result: paths, logging, handling of results.
UNSIGNED_KEYS = {
    "data_dir",
    "output_dir",
    "offline",
    "fresh",
    "objective",
    "paper_tables",
    "description",
    "smoke_overrides",
    "checkpoint_every",
    "tracking",
    "tracking_checkpoints",
    "hydra",
    "experiment",
    "keep_diff",
    "keep_predictions",
    "figures",
}


def validate_folder(path: str) -> str:
    """Validate a folder and expand ~, which shells do not expand after "=".

    Raises:
        ValueError: the path is empty or has a zero byte.
    """
    if not path.strip() or "\0" in path:
        raise ValueError(f"{path!r} is not a folder; give a path, . for the current folder")
    return str(Path(path).expanduser()) if path.startswith("~") else path


def validate_device(device: str) -> str:
    """Validate a device name without torch.

    Raises:
        ValueError: the name is not a device.
    """
    if not re.fullmatch(rf"cpu|({'|'.join(ACCELERATORS)})(:\d+)?", device):
        raise ValueError(
            f"device={device}: must be cpu, {', '.join(ACCELERATORS)}, or one of several GPUs (cuda:0, cuda:1, …)"
        )
    return device


def parse_device(text: str) -> str:
    """Type of an argument for a device.

    Raises:
        ConfigError: the text is not a device.
    """
    try:
        return validate_device(text)
    except ValueError as error:
        raise ConfigError(f"--{error}") from None


OBJECTIVES_KEY = "hydra.sweeper.objectives"
OBJECTIVES_VARIABLE = "RUNNER_OBJECTIVES"  # objectives of a sweep for its jobs, separated by |
GEOMETRIC = "geometric"  # value of ``eval_every``
EVALUATIONS = 24  # number of evaluations, spaced geometrically in cost


class BudgetKeys(BaseModel):
    """Cost limits for the training of a replicate, by kind; None for no limit."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    densities: PositiveInt | None = None
    gradients: PositiveInt | None = None
    forwards: PositiveInt | None = None
    environment_steps: PositiveInt | None = None
    cpu_seconds: PositiveFloat | None = None


class Settings(BaseModel):
    """Run-level keys; conf/config.yaml has their defaults and meanings."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    experiment: str
    description: str | None
    seed: NonNegativeInt
    replicates: PositiveInt
    steps: PositiveInt | None
    eval_every: PositiveInt | Literal["geometric"] | None
    record_every: PositiveInt
    checkpoint_every: PositiveInt
    device: Annotated[str, AfterValidator(validate_device)]
    dtype: Literal["float64", "float32"]
    # torch accepts any number, and some abort the process
    threads: Annotated[int, Field(gt=0, le=1024)]
    smoke: bool
    smoke_overrides: Values
    debug: Literal["overfit", "profile"] | None
    objective: str | None
    side_by_side: bool
    validation: Annotated[float, Field(gt=0, lt=1)] | None
    budget: Values | None  # validated as ``BudgetKeys``
    decision: Values | None
    fresh: bool
    offline: bool
    tracking: bool
    tracking_checkpoints: bool
    keep_diff: bool
    keep_predictions: bool
    figures: bool
    paper_tables: list[str]
    plugins: list[str]
    data_dir: Annotated[str, AfterValidator(validate_folder)]
    output_dir: Annotated[str, AfterValidator(validate_folder)]


def signed_overrides(overrides: Iterable[str]) -> list[str]:
    """Overrides ("key=value") that can change a result."""
    return [
        word for word in overrides if re.split(r"[.=]", word.lstrip("+~"))[0] not in UNSIGNED_KEYS
    ]


def sign(config: Values, data: str) -> str:
    """Hash of the signed config and of the name of the data."""
    return hash_values(signed_config(config | {"data": data}))[:12]


def hash_values(values: Any) -> str:
    """SHA-256 of JSON values; the order of keys does not change it."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def signed_config(config: Values) -> Values:
    """Resolved config without the keys that cannot change a result."""
    return {k: v for k, v in config.items() if k not in UNSIGNED_KEYS}


def requested_objectives() -> list[str]:
    """Metrics of the objectives that a sweep requests from this job."""
    value = os.environ.get(OBJECTIVES_VARIABLE)
    return value.split("|") if value else []
