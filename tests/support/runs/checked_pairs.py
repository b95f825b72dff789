"""Pair checks of components built separately."""

from __future__ import annotations

from components.contracts.attackers import Attacker
from components.contracts.roles import Dataset, Inference, Model
from runner.compose import pairs
from runner.errors import ConfigError, UnfitError


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuse incompatible parts as configured, without trying fixes.

    Raises:
        ConfigError: the components are incompatible.
    """
    try:
        pairs.check_pairs(dataset, model, inference, attacker)
    except UnfitError as error:
        raise ConfigError(
            f"{error.problem}; set {error.fix}" if error.fix else str(error)
        ) from None
