"""Checks that a dataset has the traits that a model, a method or an attacker requires."""

from __future__ import annotations

from components import registry
from components.contracts.attackers import Injection
from components.contracts.requirements import TRAITS
from components.contracts.roles import Dataset, Inference, Model
from components.datasets.own.own_file import OwnFile
from runner.compose.fit.incompatible import IncompatibleError


def check_traits(
    dataset: Dataset, part: Model | Inference | Injection, role: str, where: str = ""
) -> None:
    """Refuse a component that cannot take the traits of the data.

    The component is chosen by the key ``where`` (its role's key).  The traits are known
    only as far as the class of the dataset declares them.

    Raises:
        IncompatibleError: with the traits of the data.
    """
    is_described = registry.file("dataset", dataset.name) is not None and not isinstance(
        dataset, OwnFile
    )
    traits = dataset.data_traits()
    misfits = [
        (why, TRAITS[trait][0], "")
        for trait, why in part.requires.refused_traits.items()
        if trait in traits
    ]
    if is_described:
        lacking = [
            (trait, why)
            for trait, why in part.requires.required_traits.items()
            if trait not in traits
        ]
        misfits += [
            (why, TRAITS[trait][1], dataset.traits_where.get(trait, "")) for trait, why in lacking
        ]
    if misfits:
        why, has, setting = misfits[0]
        raise IncompatibleError(
            f"{where or role}={part.name}: {why}, and dataset={dataset.name} has {has}",
            where or role,
            fix=f"dataset.{setting}" if setting else "",
        )
