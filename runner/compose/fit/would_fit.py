"""Components that would fit, as complaints list them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from components import registry
from components.contracts.roles import Component
from runner.compose.build import ROLE_OF

C = TypeVar("C", bound=Component)


def would_fit(base: type[C], fits: Callable[[type[C]], bool]) -> list[str]:
    """Names of the components of a role, or of one of its kinds, whose class fits."""
    role = ROLE_OF[base]
    classes = {name: registry.get(role, name) for name in registry.names(role)}
    return [name for name, cls in classes.items() if issubclass(cls, base) and fits(cls)]


def listed(names: list[str]) -> str:
    """Names as a complaint has them."""
    return ", ".join(names) if names else "none yet"


def a_kind(kind: str) -> str:
    """A kind of problem with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
