"""Names of the Python API before 0.1.0, for plug-ins: they work until 0.2.0, with a warning.

Old modules are imported as the new ones, old functions and classes are looked up in
``old_names.yaml``, and methods and ClassVars that a class of a user defines under an old name are
found under the new one.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
METHODS = {
    "assumed": "assumptions",
    "informed": "with_problem",
    "known": "knowledge_used",
    "labelled": "target_kind",
    "made": "variational_capabilities",
    "needed": "required_capabilities",
    "offered": "capabilities",
    "seated": "assign_seats",
}

_COMPONENT_VARS = {
    "avoids": "requires.refused_traits",
    "before": "legacy_defaults",
    "shares": "inherited_keys",
    "wants": "requires.required_traits",
}
_ATTACKER_VARS = _COMPONENT_VARS | {"kinds": "requires.kinds", "targets": "requires.targets"}
# old ClassVars of the roles
CLASS_VARS: dict[str, dict[str, str]] = {
    "Dataset": _COMPONENT_VARS,
    "Model": {
        **_ATTACKER_VARS,
        "assumes": "requires.simulated",
        "domains": "requires.domains",
        "needs_attacker": "requires.attacker_capabilities",
        "values": "requires.values",
    },
    "Inference": {
        **_COMPONENT_VARS,
        "attacks": "requires.attacker",
        "enough": "max_useful_steps",
        "gives": "provides",
        "gives_by_kind": "provides_by_kind",
        "instead_by_kind": "requires.alternatives_by_kind",
        "kinds": "requires.kinds",
        "needs": "requires.capabilities",
        "needs_by_kind": "requires.capabilities_by_kind",
        "sees": "requires.batch_kind",
    },
    "Gradient": {**_COMPONENT_VARS, "needs": "requires.capabilities"},
    "Block": _COMPONENT_VARS,
    "Evasion": _ATTACKER_VARS,
    "Contamination": _ATTACKER_VARS,
    "Injection": _ATTACKER_VARS,
    "Opponent": _ATTACKER_VARS,
}


@cache
def read_old_names() -> dict[str, dict[str, Any]]:
    """``modules``: old name -> new name; ``names``: module -> {old name: new name}."""
    import yaml

    path = Path(__file__).with_suffix(".yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def resolve_old_name(module: str, name: str, former: str | None = None) -> object:
    """The object of a module that had another name before; for ``__getattr__`` of the module.

    Args:
        module: where it is now.
        name: what is asked for.
        former: the module's own old name, if that was used.

    Raises:
        AttributeError: there was no such name.
    """
    dunder = name.startswith("__")  # asked by the import system at every import of a name
    new = None if dunder else read_old_names()["names"].get(module, {}).get(name)
    if new is None and (former is None or dunder):
        raise AttributeError(f"module {former or module!r} has no attribute {name!r}")
    attributes = vars(importlib.import_module(module))
    if (new or name) not in attributes:
        raise AttributeError(f"module {former or module!r} has no attribute {name!r}")
    _warn(f"{former or module}.{name}", f"{module}.{new or name}", stacklevel=4)
    return attributes[new or name]


def answer_old_names(namespace: dict[str, Any]) -> None:
    """Give a module, by its ``globals()``, a ``__getattr__`` for old names of what it holds."""
    module = namespace["__name__"]
    namespace["__getattr__"] = lambda name: resolve_old_name(module, name)


class OldModule(ModuleType):
    """A module under its old name."""

    def __getattr__(self, name: str) -> object:
        return resolve_old_name(read_old_names()["modules"][self.__name__], name, self.__name__)


class OldModules:
    """Finds modules that have moved: names of ours without a file."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.split(".")[0] not in ("components", "runner"):
            return None
        place = ROOT.joinpath(*name.split("."))
        if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file():
            return None
        modules = read_old_names()["modules"]
        is_package = any(old.startswith(f"{name}.") for old in modules)
        if name not in modules and not is_package:
            return None
        return ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return OldModule(spec.name) if spec.name in read_old_names()["modules"] else None

    def exec_module(self, module: ModuleType) -> None:
        """An old module has no code of its own."""


def install() -> None:
    """Make old modules importable."""
    if not any(isinstance(finder, OldModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldModules())


def adopt_old_methods(cls: type) -> None:
    """Set methods that a class of a user defines under old names under the new ones too."""
    for old, new in METHODS.items():
        if callable(method := vars(cls).get(old)) and new not in vars(cls) and hasattr(cls, new):
            _warn(f"{cls.__name__}.{old}", f"{cls.__name__}.{new}", stacklevel=3)
            setattr(cls, new, method)


class OldClassVar:
    """A ClassVar of a role under its old name."""

    def __init__(self, old: str, new: str):
        self.old = old
        self.new = new

    def __get__(self, instance: object, owner: type) -> object:
        name = owner.__name__
        _warn(f"{name}.{self.old}", f"{name}.{self.new}", stacklevel=3)
        return attrgetter(self.new)(owner)


def adopt_old_class_vars(cls: type) -> dict[str, object]:
    """Requirements that a class declares under old names; its other old ClassVars are renamed.

    A role's base class gets the old names, so that they can be read.
    """
    role = next(
        base
        for base in cls.__mro__
        if base.__name__ in CLASS_VARS and base.__module__.startswith("components.contracts.")
    )
    requires = {}
    annotations = vars(cls).get("__annotations__", {})
    for old, new in CLASS_VARS[role.__name__].items():
        if cls is role:
            setattr(cls, old, OldClassVar(old, new))
        elif old in vars(cls) and "ClassVar" in str(annotations.get(old, "ClassVar")):
            _warn(f"{cls.__name__}.{old}", f"{cls.__name__}.{new}", stacklevel=7)
            value = vars(cls)[old]
            delattr(cls, old)  # so that reading it warns
            if new.startswith("requires."):
                requires[new.removeprefix("requires.")] = value
            else:
                setattr(cls, new, value)
    return requires


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(
        f"{old} is now {new}; the old name goes with version 0.2.0",
        FutureWarning,
        stacklevel=stacklevel,
    )
