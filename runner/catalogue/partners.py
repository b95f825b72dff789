"""Compatible components of the other roles, from the declarations of their classes."""

from __future__ import annotations

from components.contracts.requirements import misfit
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue, declaration


def _fits(parts: dict[str, ClassDeclaration]) -> bool:
    """True if two components are compatible by their classes.

    ``runner.compose.pairs`` checks the same for configured components."""
    dataset, model, inference = (parts.get(role) for role in ("dataset", "model", "inference"))
    gradient = parts.get("gradient")
    if "block" in parts and model:
        return "blocks" in model.holds
    if gradient and inference:
        return "gradient" in inference.holds
    if gradient and model:
        return gradient.requires.capabilities <= model.words("offers")
    if dataset and model:
        is_misfit = misfit(dataset.data_facts(), model.requires)
        return not is_misfit and model.requires.simulated <= dataset.words("simulates")
    first, second = parts.values()
    shared = first.kinds & second.kinds
    if model and inference:  # some setting of the model satisfies the method
        offered = model.words("offers") | model.words("offers_where")
        return any(inference.requires.capabilities_for(k, offered) <= offered for k in shared)
    return bool(shared)


# Roles of the partners displayed for a component, by its role.
_PARTNER_ROLES = {
    "dataset": ("model",),
    "model": ("dataset", "inference"),
    "inference": ("model",),
    "attacker": ("dataset",),
    "gradient": ("model", "inference"),
    "block": ("model",),
}


def partners(role: str, own: ClassDeclaration) -> list[tuple[str, str]]:
    """Components of the other roles that are compatible with a component."""
    out = []
    for other in _PARTNER_ROLES.get(role, ()):
        names = [
            e.name
            for e in catalogue(other)
            if _fits({role: own, other: declaration(other, e.name)})
        ]
        out.append((other, ", ".join(names) or "none yet"))
    return out
