"""Pair checks of components made one by one."""

from __future__ import annotations

from components.contracts.attackers import Attacker
from components.contracts.roles import Dataset, Inference, Model
from runner.compose import pairs
from runner.errors import ConfigError, UnfitError


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses parts that do not fit as they are configured; a fix has not been tried.

    Raises:
        ConfigError: naming the pair.
    """
    try:
        pairs.check_pairs(dataset, model, inference, attacker)
    except UnfitError as error:
        raise ConfigError(
            f"{error.problem}; set {error.fix}" if error.fix else str(error)
        ) from None
