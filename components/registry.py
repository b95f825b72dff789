"""Registry of components by name.  A component's name, its YAML and its file share one word, so
that ``inference=sgld`` is found in ``components/**/sgld.py`` without importing other files.

    @register("inference", "sgld")
    class SGLD(Inference):
        \"\"\"One sentence.

        Source: Gallego (2021), eq. (2.1).\"\"\"

``get`` imports one file.  A user's component is registered by importing the module listed in
``plugins``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar


@dataclass(frozen=True)
class Role:
    """One role, declared once; a new role requires a folder in ``conf`` and a line here."""

    bases: tuple[str, ...]  # base classes of its components
    contract: str = "roles"  # their module in components.contracts
    chosen: bool = True  # False if it exists only inside other components
    required: bool = True  # True if every run requires one
    given: str = ""  # key through which other components hold one


ROLES: dict[str, Role] = {
    "dataset": Role(("Dataset",)),
    "model": Role(("Model",)),
    "inference": Role(("Inference",)),
    "attacker": Role(
        ("Evasion", "Contamination", "Injection", "Opponent"),
        "attackers",
        required=False,
    ),
    "gradient": Role(("Gradient",), chosen=False, given="inference.gradient={}"),
    "block": Role(("Block",), chosen=False, given="model.blocks=[{}]"),
}
CHOSEN = tuple(role for role, facts in ROLES.items() if facts.chosen)
REQUIRED = tuple(role for role, facts in ROLES.items() if facts.chosen and facts.required)

_HERE = Path(__file__).parent
_registered: dict[tuple[str, str], type] = {}
C = TypeVar("C", bound=type)


class UnknownComponentError(LookupError):
    """No component of the role has the name."""

    def __init__(self, role: str, name: str, names: list[str]):
        super().__init__(f"{role}={name}: no such {role}")
        self.role = role
        self.name = name
        self.names = names


def register(role: str, name: str) -> Callable[[C], C]:
    """Class decorator that registers the class as ``role=name``.

    Raises:
        ValueError: the role does not exist, or another class already has the name.
    """
    if role not in ROLES:
        raise ValueError(f"{role!r} is not a role; roles are {', '.join(ROLES)}")

    def add(cls: C) -> C:
        other = _registered.setdefault((role, name), cls)
        # A reloaded module replaces itself; a different one must not silently shadow it.
        if other is not cls and (other.__module__, other.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            raise ValueError(f"{role}={name} is already {other.__module__}.{other.__qualname__}")
        _registered[role, name] = cls
        return cls

    return add


def parse_docstring(docstring: str | None) -> tuple[str, str]:
    """First sentence of a docstring, and the text after ``Source:``."""
    text = " ".join((docstring or "").split())
    head, _, source = text.partition("Source:")
    sentence = head.split(". ")[0].strip().rstrip(".")
    # "eq. (4.2)" and "et al. (2015)" do not end a sentence: the next sentence starts with a capital
    # letter.
    return sentence, re.split(r"(?<!Fig)\. (?=[A-Z])", source)[0].strip().rstrip(".")


@cache
def _sources() -> list[Path]:
    """Source files of this package, sorted."""
    return sorted(_HERE.rglob("*.py"))


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _files(role: str) -> dict[str, Path]:
    return {p.stem: p for p in _sources() if f'@register("{role}", "{p.stem}")' in _read(p)}


def names(role: str) -> list[str]:
    """Names that ``get`` would find, sorted."""
    return sorted({*_files(role), *(n for r, n in _registered if r == role)})


@cache
def file(role: str, name: str) -> Path | None:
    """File of a built-in component; None if no component has that name.

    Only files of that name are read.
    """
    if not name.isidentifier():
        return None
    marked = f'@register("{role}", "{name}")'
    paths = [path for path in _sources() if path.stem == name]
    return next((path for path in paths if marked in _read(path)), None)


def exists(role: str, name: str) -> bool:
    """True if ``get`` would find the component."""
    return (role, name) in _registered or file(role, name) is not None


def is_imported(role: str, name: str) -> bool:
    """True if the component's class is already imported, ready for ``get``."""
    return (role, name) in _registered


def get(role: str, name: str) -> type[Any]:
    """The class registered as ``role=name``; its file is imported if necessary.

    Raises:
        UnknownComponentError: the name does not exist; the message lists similar names.
    """
    if (role, name) not in _registered and (path := file(role, name)):
        importlib.import_module(
            ".".join(["components", *path.relative_to(_HERE).with_suffix("").parts])
        )
    if (role, name) not in _registered:
        raise UnknownComponentError(role, name, names(role))
    return _registered[role, name]
