"""Declarations of a component's class: types and comments of its keys, and what it fits.

Those of the built-in components are in ``components/index.json``, which ``make index`` writes, so
that torch is not imported for them; another class is imported and described by the same function.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import components
from components import registry
from runner.catalogue.class_declaration import ClassDeclaration

INDEX = Path(components.__path__[0]) / "index.json"
CONFIG = "config"  # entry of the run-level keys


@cache
def read_index() -> dict[str, ClassDeclaration]:
    """Declarations by ``role/name``, and those of the run-level keys by ``config``."""
    entries = json.loads(INDEX.read_text(encoding="utf-8"))
    return {key: ClassDeclaration(**entry) for key, entry in entries.items()}


def declaration(role: str, name: str) -> ClassDeclaration:
    """Declarations of a component; one that is not in the index is imported.

    Raises:
        UnknownComponentError: there is none of that name.
    """
    indexed = read_index().get(f"{role}/{name}")
    if indexed is not None:
        return indexed
    from runner.catalogue.class_description import describe_class

    return describe_class(registry.get(role, name), role, name)


def catalogue(role: str) -> list[ClassDeclaration]:
    """Every built-in component of a role, and every plug-in registered so far."""
    return [declaration(role, name) for name in registry.names(role)]
