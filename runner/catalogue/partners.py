"""Compatible components of the other roles, read from the text of their classes."""

from __future__ import annotations

from typing import Any

from components import registry
from runner.catalogue.declarations import ClassDeclaration, component_declaration


def as_set(value: Any) -> set[str]:
    """One word or several, of a fact of a class."""
    return (
        set(value)
        if isinstance(value, set | list | tuple | frozenset)
        else {value}
        if value
        else set()
    )


def _fits(parts: dict[str, ClassDeclaration]) -> bool:
    """The rules of ``runner.compose.fit.pairs.check_pairs``, from the text of the classes of two
    roles."""
    dataset, model, inference = (parts.get(role) for role in ("dataset", "model", "inference"))
    gradient = parts.get("gradient")
    attacker = parts.get("attacker")
    if "block" in parts and model:
        return "blocks" in model.holds
    if gradient and inference:
        return "gradient" in inference.holds
    if gradient and model:
        return gradient.requires.capabilities <= as_set(model.facts.get("offers"))
    first, second = parts.values()
    shared = first.kinds & second.kinds
    if dataset and model:
        requires = model.requires
        target = dataset.facts.get("target")
        values = dataset.facts.get("values")
        return (
            bool(shared)
            and ("supervised" not in shared or dataset.facts["domain"] in requires.domains)
            and (not target or requires.targets is None or target in requires.targets)
            and (not values or requires.values is None or values in requires.values)
            and requires.simulated <= as_set(dataset.facts.get("simulates"))
        )
    if model and inference:
        offered = as_set(model.facts.get("offers")) | set(model.facts.get("offers_where") or ())
        ways = [way for kind in shared for way in inference.requires.ways(kind)]
        return any(way <= offered for way in ways)
    return bool(shared) and (attacker is None or dataset is not None)


# Roles of the components shown with a component of one role: the others fit it through these.
_PARTNER_ROLES = {
    "dataset": ("model",),
    "model": ("dataset", "inference"),
    "inference": ("model",),
    "attacker": ("dataset",),
    "gradient": ("model", "inference"),
    "block": ("model",),
}


def partners(role: str, own: ClassDeclaration) -> list[tuple[str, str]]:
    """Components of the other roles that go with one."""
    out = []
    for other in _PARTNER_ROLES.get(role, ()):
        names = [
            e.name
            for e in registry.catalogue(other)
            if _fits({role: own, other: component_declaration(e)})
        ]
        out.append((other, ", ".join(names) or "none yet"))
    return out
