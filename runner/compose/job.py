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
from runner.compose.check import Composition, build_decision, check_data_keys
from runner.compose.compose import Composed
from runner.compose.resolve import ResolvedConfig, resolve
from runner.compose.suggest import add_suggested_fixes
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
    def n_together(self) -> int:
        """Number of replicates computed together."""
        return self.settings.replicates if self.is_vectorised else 1

    @property
    def loops(self) -> int:
        """Number of replicates, or of groups of them, computed one after another."""
        return self.settings.replicates // self.n_together

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
            check_data_keys(settings, composition.build("dataset", composition.values))
        parts = composition.check(composition.values)
    except UnfitError as error:
        raise add_suggested_fixes(error, composition) from None
    dataset: Dataset = parts["dataset"]
    decision = build_decision(settings, dataset)
    state = None
    if data is None:
        data = dataset.identity(Path(settings.data_dir), settings.offline)
        data = data if settings.validation is None else f"{data}-validation"
        state = data_state(dataset.name, Path(settings.data_dir), settings.offline)
    identified = resolved.identify(data)
    return Job(**vars(identified) | parts, decision=decision, data_state=state)


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
