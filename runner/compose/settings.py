"""The run-level keys, and the identity of a run; torch is not needed for either."""

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

from runner.compose.devices import validate_device

MAX_NAME_BYTES = 255  # characters that the name of a file or a folder may have
# Keys that cannot change a number: paths, logging, and the handling of a result.
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
# The parameter of each loss of a decision that has one.
LOSS_PARAMETERS = {"costs": "costs", "pinball": "level", "tolerance": "radius"}
# Keys added later, of components at any depth or, after a component's name and a dot, of this
# component only. Their defaults here reproduce the behaviour before the keys existed.
LEGACY_DEFAULTS: dict[str, Any] = {
    "precision": "full",
    "collapse": "none",
    "superchains": None,
    "alphas": [],
    "csv.standardise": True,
    "csv.bounds": None,
    "csv.image_shape": None,
    "module.outputs": None,
    "csv.exclude": [],
    "csv.decimal": None,
    "csv.encoding": None,
    "csv.classes": None,
    "csv.gaps": "error",
    "csv.dates": None,
    "csv_series.date_format": None,
    "csv_series.exclude": [],
    "csv_series.decimal": None,
    "csv_series.encoding": None,
    "csv_series.season": 1,
    "stochastic_volatility.states": "shared",
    "gradient_variance.gradient": None,
    "shrink": False,
    "sgld_r.kernel_particles": None,
    "svgd.kernel_particles": None,
    "importance_sampling.points": "random",
    "cavi.joint": [],
}


def validate_folder(path: str) -> str:
    """Path of a folder; ~ is the user's own, which shells do not expand after "=".

    Raises:
        ValueError: it is empty, or not a path that a disk can have.
    """
    if not path.strip() or "\0" in path:
        raise ValueError(f"{path!r} is no folder; give its path, . is the present one")
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in Path(path).parts):
        raise ValueError(
            f"{path[:60]}… is no folder; a name in it is longer than {MAX_NAME_BYTES} bytes"
        )
    return str(Path(path).expanduser()) if path.startswith("~") else path


class BudgetKeys(BaseModel):
    """Limits of the costs of a replicate's training, by kind; None: no limit."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    densities: PositiveInt | None = None
    gradients: PositiveInt | None = None
    forwards: PositiveInt | None = None
    environment_steps: PositiveInt | None = None
    cpu_seconds: PositiveFloat | None = None


class Settings(BaseModel):
    """The run-level keys (conf/config.yaml holds their defaults and meanings)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    experiment: str
    description: str | None
    seed: NonNegativeInt
    replicates: PositiveInt
    steps: PositiveInt | None
    eval_every: PositiveInt | None
    record_every: PositiveInt
    checkpoint_every: PositiveInt
    device: Annotated[str, AfterValidator(validate_device)]
    dtype: Literal["float64", "float32"]
    # torch itself takes any number, and some stop the process
    threads: Annotated[int, Field(gt=0, le=1024)]
    smoke: bool
    smoke_overrides: dict[str, Any]
    debug: Literal["overfit", "profile"] | None
    objective: str | None
    side_by_side: bool = False  # records from before the key have none
    # records from before the key have none
    validation: Annotated[float, Field(gt=0, lt=1)] | None = None
    # records from before the key have none; validated as ``BudgetKeys``
    budget: dict[str, Any] | None = None
    # records from before the key have none
    decision: dict[str, Any] | None = None
    fresh: bool
    offline: bool
    tracking: bool
    tracking_checkpoints: bool = False  # records from before the key have none
    keep_diff: bool = False  # records from before the key have none
    keep_predictions: bool = False  # records from before the key have none
    figures: bool = True  # records from before the key have none
    paper_tables: list[str]
    plugins: list[str]
    data_dir: Annotated[str, AfterValidator(validate_folder)]
    output_dir: Annotated[str, AfterValidator(validate_folder)]


def signed_overrides(overrides: Iterable[str]) -> list[str]:
    """Overrides ("key=value") that can change a number."""
    return [
        word for word in overrides if re.split(r"[.=]", word.lstrip("+~"))[0] not in UNSIGNED_KEYS
    ]


def sign(config: dict[str, Any], data: str) -> str:
    """Hash of the resolved config less what cannot change a number, and of the data's own name."""
    signed = signed_config(config | {"data": data})
    return hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()[:12]


def signed_config(config: dict[str, Any]) -> dict[str, Any]:
    """A resolved config less what cannot change a number and keys at their legacy defaults."""
    signed = {k: v for k, v in config.items() if k not in UNSIGNED_KEYS}
    # nothing is held out, as in the records from before the key
    if signed.get("validation") is None:
        signed.pop("validation", None)
    limits = {k: v for k, v in (signed.pop("budget", None) or {}).items() if v is not None}
    signed = _drop_idle_decision(signed) | ({"budget": limits} if limits else {})
    if not signed.get("side_by_side"):  # one after the other, as in the records from before the key
        signed.pop("side_by_side", None)
    dropped: dict[str, Any] = _drop_legacy_defaults(_drop_idle_shrinkage(signed))
    return dropped


def _drop_idle_decision(config: dict[str, Any]) -> dict[str, Any]:
    """A config less the parameters of losses that are not ``decision.loss``, and less the decision
    if there is none, as in the records from before the key."""
    decision = config.get("decision")
    rest = {k: v for k, v in config.items() if k != "decision"}
    if not isinstance(decision, dict) or decision.get("loss") is None:
        return rest
    used = {"loss", LOSS_PARAMETERS.get(str(decision["loss"]))}
    return rest | {"decision": {k: v for k, v in decision.items() if k in used}}


def _drop_idle_shrinkage(config: dict[str, Any]) -> dict[str, Any]:
    """A config less the shrinkage of a plan where nothing is planned."""
    dataset = config.get("dataset")
    if not isinstance(dataset, dict):
        return config
    budget = dataset.get("budget")
    if not isinstance(budget, dict) or budget.get("total") is not None:
        return config
    unused = {k: v for k, v in budget.items() if k != "shrink"}
    return config | {"dataset": dataset | {"budget": unused}}


def _drop_legacy_defaults(value: Any) -> Any:
    """A config less the keys of ``LEGACY_DEFAULTS`` that have their defaults: the records from
    before these keys have none."""
    if isinstance(value, dict):
        keys = {k: k if k in LEGACY_DEFAULTS else f"{value.get('name')}.{k}" for k in value}
        return {
            k: _drop_legacy_defaults(v)
            for k, v in value.items()
            if keys[k] not in LEGACY_DEFAULTS or v != LEGACY_DEFAULTS[keys[k]]
        }
    return [_drop_legacy_defaults(v) for v in value] if isinstance(value, list) else value
