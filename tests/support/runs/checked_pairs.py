"""Pair checks of components made one by one."""

from __future__ import annotations

from components.contracts.attackers import Attacker
from components.contracts.requirements import misfit
from components.contracts.roles import Dataset, Inference, Model
from runner.catalogue.class_description import describe_class
from runner.compose import pairs
from runner.errors import ConfigError, UnfitError


def check_pairs(
    dataset: Dataset, model: Model, inference: Inference, attacker: Attacker | None
) -> None:
    """Refuses parts that do not fit as they are configured; a fix has not been tried.

    Raises:
        ConfigError: naming the pair.
    """
    data = dataset.data_facts()
    parts = {"model": model, "inference": inference, "attacker": attacker}
    for role, part in parts.items():
        if part and (why := misfit(data, describe_class(type(part)).requires)):
            raise ConfigError(f"{role}={part.name}{why}")
    try:
        pairs.check_pairs(dataset, model, inference, attacker)
    except UnfitError as error:
        raise ConfigError(
            f"{error.problem}; set {error.fix}" if error.fix else str(error)
        ) from None
