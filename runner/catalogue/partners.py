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


def _is_compatible_model(own: ClassDeclaration, kind: str, offered: set[str]) -> bool:
    """True if a model with these capabilities meets an inference method's requirements.

    The requirements depend on the kind of problem.
    """
    first, instead = (own.facts.get(fact) or {} for fact in ("needs_by_kind", "instead_by_kind"))
    ways = [as_set(first.get(kind)), *([as_set(instead[kind])] if kind in instead else [])]
    return as_set(own.facts.get("needs")) <= offered and any(way <= offered for way in ways)


def _fits(parts: dict[str, ClassDeclaration]) -> bool:
    """The rules of ``runner.compose.fit.pairs.check_pairs``, from the text of the classes of two
    roles."""
    roles = parts.keys()
    if roles == {"block", "model"}:
        return "blocks" in parts["model"].holds
    if roles == {"gradient", "inference"}:
        return "gradient" in parts["inference"].holds
    if roles == {"gradient", "model"}:
        needs = as_set(parts["gradient"].facts.get("needs"))
        return needs <= as_set(parts["model"].facts.get("offers"))
    kinds = [as_set(part.facts.get("kind") or part.facts.get("kinds")) for part in parts.values()]
    shared = kinds[0] & kinds[1]
    if roles == {"dataset", "model"}:
        return bool(shared) and _reads_data(
            parts["model"], parts["dataset"], "supervised" in shared
        )
    if roles == {"inference", "model"}:
        facts = parts["model"].facts
        offered = as_set(facts.get("offers")) | set(facts.get("offers_where") or ())
        return any(_is_compatible_model(parts["inference"], kind, offered) for kind in shared)
    return bool(shared)


def _reads_data(model: ClassDeclaration, dataset: ClassDeclaration, is_supervised: bool) -> bool:
    """True if a model has a likelihood for the labels or values of a dataset and reads its
    inputs."""
    for fact, allowed in (("target", "targets"), ("values", "values")):
        value = dataset.facts.get(fact)
        choices = as_set(model.facts.get(allowed))
        if value and choices and value not in choices:
            return False
    if is_supervised and dataset.facts["domain"] not in as_set(model.facts["domains"]):
        return False
    return as_set(model.facts.get("assumes")) <= as_set(dataset.facts.get("simulates"))


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
