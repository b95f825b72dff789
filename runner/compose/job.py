"""Compose, validate, and identify a run, before any data is read.

``prepare`` turns a composed config into a ``Job``: its parts in full and its run-level keys checked
(``resolve``), each component built (pydantic names every bad key), and all of them checked against
each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.contracts.attackers import Attacker, Evasion, Injection
from components.contracts.roles import Dataset, Inference, Model
from components.evaluation.decision import DecisionKeys
from components.evaluation.security.threat import Threat, build_threat
from runner.catalogue.declarations import data_state
from runner.catalogue.settings import Settings, sign
from runner.compose.check import Composition
from runner.compose.compose import Composed
from runner.compose.suggest import add_suggested_fixes
from runner.compose.validate import ResolvedConfig, check_draws, resolve, validate_model
from runner.errors import ConfigError, UnfitError


@dataclass(frozen=True, kw_only=True)
class Job(ResolvedConfig):
    """A validated run: what to do, with what, and under which identity."""

    dataset: Dataset
    model: Model
    inference: Inference
    attacker: Attacker | None
    threat: Threat | None  # norm and sizes that an attacker is evaluated at
    decision: DecisionKeys | None  # loss that predictions of test labels minimise
    data_state: str | None  # inputs of ``data``: see ``runner.catalogue.declarations``

    @property
    def is_vectorised(self) -> bool:
        """True if all replicates are computed simultaneously, as a leading dimension.

        Otherwise they are computed one after the other.
        """
        is_folded = (
            self.dataset.vectorised and self.dataset.poses() in self.inference.folds_replicates
        )
        return is_folded or self.side_by_side

    @property
    def side_by_side(self) -> bool:
        """True if replicates are vectorised at the user's request.

        A single replicate is vectorised too if it has several posteriors.
        """
        return self.settings.side_by_side and (
            self.settings.replicates > 1 or bool(self.inference.variants())
        )

    @property
    def method(self) -> Inference:
        """The inference that takes the steps."""
        return (self.inference.side_by_side() if self.side_by_side else None) or self.inference


def prepare(composed: Composed) -> Job:
    """A composed config as a validated job.

    Raises:
        ConfigError: any mistake, in one to three lines.
    """
    return build(resolve(composed))


def build(resolved: ResolvedConfig, data: str | None = None) -> Job:
    """The job of a config in full.

    Args:
        resolved: the config.
        data: name of the data of a fitted model, which are not looked for; None: the dataset
            names its data.

    Raises:
        ConfigError: a component refuses its keys, or two of them do not fit.
        DataUnavailableError: the data cannot be had.
    """
    settings = resolved.settings
    config = resolved.config
    check_device(settings.device, settings.dtype)
    composition = Composition(resolved)
    try:
        if data is None:
            _check_data_keys(settings, composition.build("dataset", composition.values))
        parts = composition.check(composition.values)
    except UnfitError as error:
        raise add_suggested_fixes(error, composition) from None
    dataset: Dataset = parts["dataset"]
    decision = _decision(settings, dataset)
    state = None
    if data is None:
        data = dataset.identity(Path(settings.data_dir), settings.offline)
        data = data if settings.validation is None else f"{data}-validation"
        state = data_state(dataset.name, Path(settings.data_dir), settings.offline)
    attacker = parts["attacker"]
    has_threat = isinstance(attacker, Evasion | Injection)
    threat = build_threat(attacker, config["attacker"]["eps"]) if has_threat else None
    identity = {
        "notes": [*resolved.notes, *check_draws(dict(parts["inference"]), settings)],
        "data": data,
        "signature": sign(config, data),
        "threat": threat,
        "decision": decision,
        "data_state": state,
    }
    return Job(**vars(resolved) | parts | identity)


def _decision(settings: Settings, dataset: Dataset) -> DecisionKeys | None:
    """Loss that predictions of test labels minimise; None: no decision is scored.

    Raises:
        ConfigError: a key of it is wrong, or it is a loss of other labels than the dataset's.
    """
    if settings.decision is None or settings.decision.get("loss") is None:
        return None
    decision = validate_model(DecisionKeys, settings.decision, "decision")
    target = dataset.target_kind() if dataset.poses() == "supervised" else None
    if target is None or decision.is_of_classes == (target == "real"):
        labels = "classes" if decision.is_of_classes else "real labels"
        raise ConfigError(
            f"decision.loss={decision.loss}: is of {labels}, and dataset={dataset.name} has none; "
            "use costs for classes, squared | absolute | pinball | tolerance for real labels, or "
            "leave decision out"
        )
    return decision


def _check_data_keys(settings: Settings, dataset: Dataset) -> None:
    """Refuse run-level keys that a dataset cannot use, regardless of the other components.

    Raises:
        ConfigError: naming the key.
    """
    chosen = f"dataset={dataset.name}"
    kind = dataset.poses()
    has_rows = kind in ("supervised", "unlabelled")
    folds = dataset.folds(Path(settings.data_dir))
    if folds is not None and settings.replicates > folds:
        raise ConfigError(
            f"replicates={settings.replicates}: {chosen} has here {folds} splits or folds, one to each; set "
            "replicates to at most that"
        )
    if settings.validation is not None and not has_rows:
        raise ConfigError(
            f"validation={settings.validation}: holds out training rows, and {chosen} ({kind}) has none; leave it out"
        )
    length = getattr(dataset, dataset.length_key) if dataset.length_key else None
    if length is not None and settings.steps is not None and settings.steps > length:
        raise ConfigError(f"steps={settings.steps}: {chosen} has only {length}")
    if settings.debug == "overfit" and not has_rows:
        raise ConfigError(f"debug=overfit: needs a supervised problem, {chosen} is a {kind}")
    if settings.keep_predictions and (kind != "supervised" or dataset.target_kind() != "real"):
        raise ConfigError(
            f"keep_predictions: keeps means and sds of real labels, and {chosen} has none; leave it out"
        )


def check_device(device: str, dtype: str) -> None:
    """Refuse a device that this machine does not have, and a dtype that the device does not have.

    Args:
        device: name, validated.
        dtype: float32 or float64.

    Raises:
        ConfigError: naming the key.
    """
    if device == "cpu":
        return
    import torch

    kind, _, number = device.partition(":")
    module = torch.get_device_module(kind)
    if not module.is_available():
        raise ConfigError(
            f"device={device}: no GPU was found; use device=cpu (runner doctor tells more)"
        )
    count = module.device_count()
    if number and int(number) >= count:
        raise ConfigError(
            f"device={device}: this machine has {count} of them, counted from 0; use {kind}:{count - 1} or lower"
        )
    try:
        torch.zeros((), dtype=vars(torch)[dtype], device=device)
    except TypeError:
        raise ConfigError(
            f"dtype={dtype}: device={device} has no {dtype}; use dtype=float32"
        ) from None
