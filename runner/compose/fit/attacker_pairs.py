"""Checks that an attacker can attack its target: a dataset and a model, as configured."""

from __future__ import annotations

from typing import Any

from components import registry
from components.contracts.attackers import Attacker, Contamination, Evasion, Injection
from components.contracts.opponents import Opponent
from components.contracts.problems import Domain
from components.contracts.roles import Dataset, Model
from runner.compose.fit.incompatible import IncompatibleError, kind_with_article
from runner.compose.fit.traits import check_traits
from runner.compose.parts import all_parts


def check_attacker(attacker: Attacker, where: str, dataset: Dataset, model: Model) -> None:
    """Refuses an attacker, chosen by the key ``where``, that cannot attack what it sees: a dataset
    and a model.

    Raises:
        IncompatibleError: naming the key.
    """
    kind = dataset.poses()
    target = dataset.target_kind()
    choice = f"{where}={attacker.name}"
    if kind not in attacker.requires.kinds:
        raise _wrong_kind(choice, where, kind, dataset.name)
    if attacker.requires.targets is not None and target not in attacker.requires.targets:
        needed = " or ".join(sorted(attacker.requires.targets))
        raise IncompatibleError(
            f"{choice} needs {needed} labels, those of dataset={dataset.name} are {target}",
            where,
        )
    if attacker.follows_gradient and not model.differentiable:
        raise IncompatibleError(
            f"{choice} follows a gradient, and model={model.name} has none",
            where,
        )
    if isinstance(attacker, Injection):
        check_traits(dataset, attacker, "attacker", where)
    if isinstance(attacker, Evasion):
        check_domain(attacker.inputs(), choice, where, type(dataset), dataset.name)
        if attacker.follows() == "dlr" and target == "binary":
            raise IncompatibleError(
                f"{where}.criterion=dlr: compares the first class with the third, dataset={dataset.name} has two",
                fix=f"{where}.criterion=margin",
            )


def _wrong_kind(chosen: str, where: str, kind: str, dataset: str) -> IncompatibleError:
    """The complaint about an attacker who has no use for a kind of problem."""
    return IncompatibleError(
        f"{chosen} cannot attack {kind_with_article(kind)} problem (dataset={dataset})",
        where,
    )


def check_domain(
    attacked: Domain, chosen: str, where: str, dataset: type[Dataset], name: str
) -> None:
    """Refuse an attack on inputs of another kind than the dataset's.

    Raises:
        IncompatibleError: naming the key.
    """
    if attacked != dataset.domain:
        raise IncompatibleError(
            f"{chosen} attacks {attacked} inputs, those of dataset={name} are {dataset.domain}",
            where,
        )


def check_nested_attackers(role: str, values: dict[str, Any], name: str) -> None:
    """Refuse incompatible attackers inside a component's full mapping, by class only.

    The check comes before sizes of another kind reach an attacker of other inputs, or an
    attacker that is not an evasion attack reaches the key of an evasion attack.

    Raises:
        IncompatibleError: naming the key.
    """
    dataset: type[Dataset] = registry.get("dataset", name)
    for path, inner, part in all_parts(role, values):
        attacker = part["name"]
        cls = registry.get(inner, attacker)
        if path == role:
            continue
        if issubclass(cls, Evasion) and cls.domain is not None:
            check_domain(cls.domain, f"{path}={attacker}", path, dataset, name)
        elif (
            issubclass(cls, Contamination | Injection | Opponent)
            and dataset.kind not in cls.requires.kinds
        ):
            raise _wrong_kind(f"{path}={attacker}", path, dataset.kind, name)
