"""Compatible components of the other roles, from the declarations of their classes."""

from __future__ import annotations

from components.contracts.requirements import misfit
from components.registry import ROLES
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue

ORDER = list(ROLES)


def is_compatible(first: ClassDeclaration, second: ClassDeclaration) -> bool:
    """True if some settings of two components are compatible, given in the order of the roles.

    A run applies ``misfit`` to its components as configured (``runner.compose.pairs``).
    """
    if second.role == "block" or first.role == "inference":
        return second.role in first.nested_roles.values()
    return any(not misfit(facts, second.requires) for facts in first.offered_facts())


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
        is_first = ORDER.index(role) < ORDER.index(other)
        names = [
            entry.name
            for entry in catalogue(other)
            if is_compatible(*((own, entry) if is_first else (entry, own)))
        ]
        out.append((other, ", ".join(names) or "none yet"))
    return out
