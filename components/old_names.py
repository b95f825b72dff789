"""Names of the Python API of versions before 0.1.0: they work until 0.2.0, with a warning that says
the new one."""

from __future__ import annotations

import importlib
import warnings

FUNCTIONS = {
    "components.inference.chains": {
        "averaged": "mean_over_chains",
        "collected": "to_draws",
        "moved": "advance",
        "started": "init_chains",
        "untrained": "init_for_training",
    },
}
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


def resolve_old_name(module: str, name: str) -> object:
    """The function of a module that had another name before; for ``__getattr__`` of the module.

    Raises:
        AttributeError: there was no such name."""
    new = FUNCTIONS.get(module, {}).get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(f"{module}.{name}", f"{module}.{new}", stacklevel=4)  # where the user imports it
    return vars(importlib.import_module(module))[new]


def adopt_old_methods(cls: type) -> None:
    """Puts methods that a class of the user defines under old names under the new ones."""
    for old, new in METHODS.items():
        if callable(method := vars(cls).get(old)) and new not in vars(cls) and hasattr(cls, new):
            _warn(f"{cls.__name__}.{old}", f"{cls.__name__}.{new}", stacklevel=3)
            setattr(cls, new, method)


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(
        f"{old} is now {new}; the old name goes with version 0.2.0",
        FutureWarning,
        stacklevel=stacklevel,
    )
