"""Whether an attacker can attack what it is to see: a dataset and a model, as they are configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from components import registry
from components.contracts.attackers import Attacker, Contamination, Evasion, Injection, Opponent
from components.contracts.problems import Domain
from components.contracts.roles import Dataset, Model
from runner.compose.fit.would_fit import a_kind, listed, would_fit
from runner.compose.parts import names_inside
from runner.mistakes import ConfigError

AttackerClass = type[Evasion] | type[Contamination] | type[Injection] | type[Opponent]


def attackers_that_fit(fits: Callable[[AttackerClass], bool]) -> list[str]:
    """Names of attackers of any kind whose class fits."""
    evaluated = [*would_fit(Evasion, fits), *would_fit(Injection, fits)]
    return sorted([*evaluated, *would_fit(Contamination, fits), *would_fit(Opponent, fits)])


def check_attacker(attacker: Attacker, where: str, dataset: Dataset, model: Model) -> None:
    """Refuses an attacker, chosen by the key ``where``, that cannot attack what it sees: a dataset and a model.

    Raises:
        ConfigError: naming the key, and attackers that would work.
    """
    kind, target, chosen = dataset.kind, dataset.labelled(), f"{where}={attacker.name}"
    if kind not in attacker.kinds:
        raise _wrong_kind(chosen, kind, dataset.name)
    if attacker.targets is not None and target not in attacker.targets:
        needed = " or ".join(sorted(attacker.targets))
        raise ConfigError(f"{chosen} needs {needed} labels, those of dataset={dataset.name} are {target}")
    if attacker.follows_gradient and not model.differentiable:
        names = listed(attackers_that_fit(lambda a: kind in a.kinds and not a.follows_gradient))
        raise ConfigError(
            f"{chosen} follows a gradient, and model={model.name} has none; attackers that need none: {names}"
        )
    if isinstance(attacker, Evasion):
        check_domain(attacker.inputs(), chosen, type(dataset), dataset.name)
        if attacker.follows() == "dlr" and target == "binary":
            raise ConfigError(
                f"{where}.criterion=dlr: compares the first class with the third, dataset={dataset.name} has two; use "
                "margin"
            )


def _wrong_kind(chosen: str, kind: str, dataset: str) -> ConfigError:
    """The complaint about an attacker who has no use for a kind of problem."""
    names = listed(attackers_that_fit(lambda a: kind in a.kinds))
    return ConfigError(
        f"{chosen} cannot attack {a_kind(kind)} problem (dataset={dataset}); attackers that can: {names}"
    )


def check_domain(attacked: Domain, chosen: str, dataset: type[Dataset], name: str) -> None:
    """Refuses an attack on inputs of another kind than those of a dataset.

    Raises:
        ConfigError: with attackers that would work.
    """
    kind, domain = dataset.kind, dataset.domain
    if attacked != domain:
        names = listed(would_fit(Evasion, lambda a: kind in a.kinds and a.domain == domain))
        raise ConfigError(
            f"{chosen} attacks {attacked} inputs, those of dataset={name} are {domain}; attackers that fit: {names}"
        )


def check_held_attackers(role: str, values: dict[str, Any], name: str) -> None:
    """Refuses attackers inside a component's full mapping, by their classes alone: before sizes of another kind reach one
    that attacks other inputs, or one that is none of evasion reaches the key of one.

    Raises:
        ConfigError: with attackers that would work.
    """
    dataset: type[Dataset] = registry.get("dataset", name)
    for path, inner, attacker in names_inside(role, values, role):
        cls = registry.get(inner, attacker)
        if issubclass(cls, Evasion) and cls.domain is not None:
            check_domain(cls.domain, f"{path}={attacker}", dataset, name)
        elif issubclass(cls, Contamination | Injection | Opponent) and dataset.kind not in cls.kinds:
            raise _wrong_kind(f"{path}={attacker}", dataset.kind, name)
