"""Compose, validate, and identify a run, before any data are read.

``prepare`` turns a composed config into a ``Job``: expand it and check its run-level keys
(``resolve``), build each component, where pydantic validates its keys, and check the components
against each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from components.contracts.attackers import Attacker, Evasion, Injection
from components.contracts.roles import Dataset, Inference, Model
from components.evaluation.decision import DecisionKeys
from components.evaluation.security.threat import Threat, build_threat
from runner.catalogue.declarations import data_state
from runner.catalogue.settings import Settings
from runner.compose.check import Composition
from runner.compose.compose import Composed
from runner.compose.resolve import ResolvedConfig, resolve
from runner.compose.suggest import add_suggested_fixes
from runner.compose.validate import validate_model
from runner.errors import ConfigError, UnfitError


@dataclass(frozen=True, kw_only=True)
class Job(ResolvedConfig):
    """A validated run: settings, components and identity."""

    dataset: Dataset
    model: Model
    inference: Inference
    attacker: Attacker | None
    decision: DecisionKeys | None  # loss that predictions of test labels minimise
    data_state: str | None  # state of the data files, see ``runner.catalogue.declarations``

    @cached_property
    def threat(self) -> Threat | None:
        """Norm and sizes for the evaluation of an attacker."""
        if not isinstance(self.attacker, Evasion | Injection):
            return None
        return build_threat(self.attacker, self.config["attacker"]["eps"])

    @property
    def is_vectorised(self) -> bool:
        """True if all replicates are computed together, as a leading dimension.

        Otherwise they are computed sequentially.
        """
        is_folded = (
            self.dataset.vectorised
            and self.dataset.problem_kind() in self.inference.folds_replicates
        )
        return is_folded or self.side_by_side

    @property
    def loops(self) -> int:
        """Number of replicates computed one after another."""
        return 1 if self.is_vectorised else self.settings.replicates

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
        """Inference method that takes the steps."""
        return (self.inference.side_by_side() if self.side_by_side else None) or self.inference


def prepare(composed: Composed) -> Job:
    """Turn a composed config into a validated job.

    Raises:
        ConfigError: the config is invalid; the message has one to three lines.
    """
    return build(resolve(composed))


def build(resolved: ResolvedConfig, data: str | None = None) -> Job:
    """Build the job of an expanded config.

    Args:
        resolved: the config.
        data: name of the data of a fitted model, which are not loaded; None for the name given by
            the dataset.

    Raises:
        ConfigError: a key is invalid, or components are incompatible.
        DataUnavailableError: the data are not available.
    """
    settings = resolved.settings
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
    identified = resolved.identify(data)
    return Job(**vars(identified) | parts, decision=decision, data_state=state)


def _decision(settings: Settings, dataset: Dataset) -> DecisionKeys | None:
    """Loss minimised by predictions of test labels; None if no decision is scored.

    Raises:
        ConfigError: a key is invalid, or the loss does not support the dataset's labels.
    """
    if settings.decision is None or settings.decision.get("loss") is None:
        return None
    decision = validate_model(DecisionKeys, settings.decision, "decision")
    target = dataset.target_kind() if dataset.problem_kind() == "supervised" else None
    if target is None or decision.is_of_classes == (target == "real"):
        labels = "classes" if decision.is_of_classes else "real labels"
        raise ConfigError(
            f"decision.loss={decision.loss}: requires {labels}, which dataset={dataset.name} lacks; "
            "use costs for classes, squared | absolute | pinball | tolerance for real labels, or "
            "remove decision"
        )
    return decision


def _check_data_keys(settings: Settings, dataset: Dataset) -> None:
    """Refuse run-level keys that a dataset does not support.

    Raises:
        ConfigError: a key is not supported.
    """
    chosen = f"dataset={dataset.name}"
    kind = dataset.problem_kind()
    has_rows = kind in ("supervised", "unlabelled")
    folds = dataset.folds(Path(settings.data_dir))
    if folds is not None and settings.replicates > folds:
        raise ConfigError(
            f"replicates={settings.replicates}: {chosen} has {folds} splits or folds, one per replicate; lower "
            "replicates to that number"
        )
    if settings.validation is not None and not has_rows:
        raise ConfigError(
            f"validation={settings.validation}: requires training rows, but {chosen} is a {kind} problem; remove it"
        )
    length = getattr(dataset, dataset.length_key) if dataset.length_key else None
    if length is not None and settings.steps is not None and settings.steps > length:
        raise ConfigError(f"steps={settings.steps}: {chosen} has only {length}")
    if settings.debug == "overfit" and not has_rows:
        raise ConfigError(
            f"debug=overfit: requires a supervised problem, but {chosen} is a {kind} problem"
        )
    if settings.keep_predictions and (kind != "supervised" or dataset.target_kind() != "real"):
        raise ConfigError(
            f"keep_predictions: requires real labels, which {chosen} lacks; remove it"
        )


def check_device(device: str, dtype: str) -> None:
    """Refuse a device that this machine lacks, or a dtype that the device does not support.

    Args:
        device: validated name.
        dtype: float32 or float64.

    Raises:
        ConfigError: the device or the dtype is not available.
    """
    if device == "cpu":
        return
    import torch

    kind, _, number = device.partition(":")
    module = torch.get_device_module(kind)
    if not module.is_available():
        raise ConfigError(
            f"device={device}: no GPU found; use device=cpu (runner doctor shows details)"
        )
    count = module.device_count()
    if number and int(number) >= count:
        raise ConfigError(
            f"device={device}: this machine has {count} of this kind, numbered from 0; use {kind}:{count - 1} or lower"
        )
    try:
        torch.zeros((), dtype=vars(torch)[dtype], device=device)
    except TypeError:
        raise ConfigError(
            f"dtype={dtype}: not supported on device={device}; use dtype=float32"
        ) from None
