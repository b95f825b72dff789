"""Declarations of a component's class: types and comments of its keys, and its requirements.

Built-in components are described in ``components/index.json``, which ``make index`` writes, so that
torch is not imported for them; other classes are imported and described by the same function.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import components
from components import registry
from runner.catalogue.class_declaration import ClassDeclaration
from runner.disk import conf_folders
from runner.errors import ConfigError, display_path, nearest

INDEX = Path(components.__path__[0]) / "index.json"
CONFIG = "config"  # entry of the run-level keys


@cache
def read_index() -> dict[str, ClassDeclaration]:
    """Declarations by ``role/name``; the entry ``config`` has the run-level keys."""
    entries = json.loads(INDEX.read_text(encoding="utf-8"))
    return {key: ClassDeclaration(**entry) for key, entry in entries.items()}


def declaration(
    role: str, name: str, where: str = "", fix: str = "plugins=[…]"
) -> ClassDeclaration:
    """Declarations of a component, which is imported if it is not in the index.

    Args:
        role: role of the component.
        name: its name.
        where: the component in messages, ``role=name`` by default.
        fix: option that imports a plug-in, for messages.

    Raises:
        ConfigError: the component does not exist, or its class has another base class.
    """
    indexed = read_index().get(f"{role}/{name}")
    if indexed is not None:
        return indexed
    from runner.catalogue.class_description import describe_class, nested_role

    where = where or f"{role}={name}"
    try:
        cls = registry.get(role, name)
    except registry.UnknownComponentError as error:
        file = conf_folders.find(role, name)
        if file is None:
            raise ConfigError(f"{where}: no such {role}{nearest(name, error.names)}") from None
        raise ConfigError(
            f"{where}: {display_path(file)} exists, but its class is not registered; name its module with {fix}"
        ) from None
    if nested_role(cls) != role:
        bases = ", ".join(registry.ROLES[role].bases)
        raise ConfigError(
            f"{where}: {cls.__module__}.{cls.__qualname__} must derive from {bases} to be a {role}"
        )
    return describe_class(cls, role, name)


def catalogue(role: str) -> list[ClassDeclaration]:
    """Built-in components of a role, and the plug-ins registered so far."""
    return [declaration(role, name) for name in registry.names(role)]


def data_state(dataset: str, data_dir: Path, offline: bool) -> str | None:
    """State of a data set's data besides its config: files, reading code, permission to download.

    While it is unchanged, a recorded name of the data is still valid.  "" if there are no such
    dependencies.  None if unknown: the data set is a plug-in's or reads a user's own file, or a
    download failed, which may succeed the next time.
    """
    declared = read_index().get(f"dataset/{dataset}")
    if declared is None or declared.facts.get("own_file"):
        return None
    if not declared.names_data:
        return ""
    from components.datasets import files

    if files.downloads_failed():
        return None
    lying = [
        (data.path, str(location), location.stat().st_size, location.stat().st_mtime_ns)
        for data in files.catalogue()
        if (location := files.find(data_dir, data.path))
    ]
    code = [path.read_text(encoding="utf-8") for path in (declared.file, Path(files.__file__))]
    return hashlib.sha256(json.dumps([offline, lying, code]).encode()).hexdigest()[:16]
