"""Contents of the catalogue, read from YAML and docstrings without importing torch."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from components import registry
from runner import CONF
from runner.catalogue import plugins
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue, declaration
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.disk.yaml_comments import YamlKey, read_text
from runner.errors import ConfigError, display_path, nearest

GROUPS = (*registry.ROLES, "experiment", "study", "published")
Row = tuple[str, ...]


# ---- reading
# --------------------------------------------------------------------------------------------------------
def options(group: str) -> list[str]:
    """Names that a group offers on the command line: its YAML files."""
    return conf_folders.names(group)


def find_file(group: str, name: str) -> Path:
    """The YAML of one of a group's ``options``."""
    return conf_folders.find(group, name) or CONF / group / f"{name}.yaml"


def read_keys(path: Path) -> tuple[list[YamlKey], Any]:
    """Keys and content of a YAML file.

    Raises:
        ConfigError: it is not valid YAML; the message gives the line of the error.
    """
    content: tuple[list[YamlKey], Any] = load_untrusted(path, parse=read_text)
    return content


def selected_components(content: Any, within: tuple[str, ...] = ()) -> dict[str, str]:
    """The components that an experiment's ``defaults`` list picks, itself or through the
    experiments it is derived from: role -> name, in the order of the roles."""
    selection: dict[str, str] = {}
    for entry in (content or {}).get("defaults") or []:
        if isinstance(entry, str):
            name = entry.removeprefix("/").removeprefix("experiment/")
            path = conf_folders.find("experiment", name)
            if name not in within and path is not None:
                selection |= selected_components(load_untrusted(path), (*within, name))
            continue
        for key, value in entry.items() if isinstance(entry, dict) else []:
            role = key.removeprefix("override ").strip().lstrip("/").split("@")[0]
            if role in registry.CHOSEN and isinstance(value, str):
                selection[role] = value
    return {role: selection[role] for role in registry.CHOSEN if role in selection}


def describe_file(path: Path) -> Row:
    """Name, one line and third column of an experiment, a study or a published table."""
    try:
        content = load_untrusted(path)
    except ConfigError as error:
        return path.stem, str(error), ""
    if not isinstance(content, dict):
        return path.stem, "", ""
    line = content.get("description") or content.get("caption") or content.get("title") or ""
    third = ", ".join(selected_components(content).values()) or ", ".join(
        str(content[k]) for k in ("source", "where") if isinstance(content.get(k), str)
    )
    return path.stem, " ".join(str(line).split()), " ".join(third.split())


def rows(group: str) -> list[Row]:
    """(name, one line, paper or choice) of everything in a group."""
    if group in registry.ROLES:
        return [(entry.name, entry.sentence, entry.source) for entry in catalogue(group)]
    return [describe_file(find_file(group, name)) for name in options(group)]


def describe(role: str, name: str) -> ClassDeclaration:
    """Declarations of a component's class.

    Raises:
        ConfigError: there is no component of that name.
    """
    if name in registry.names(role):
        return declaration(role, name)
    if file := conf_folders.find(role, name):
        raise ConfigError(
            f"{role}/{name}: {display_path(file)} is there, its class is not; name its module, --plugin MODULE"
        )
    raise ConfigError(f"{role}/{name}: no such {role}{nearest(name, registry.names(role))}")


def explain_keys(keys: list[YamlKey], own: ClassDeclaration) -> list[YamlKey]:
    """Keys of a component's YAML, each with its comment.

    The comment is the key's own in the YAML, or the one next to its declaration in a
    class that several components share.
    """
    return [
        key if key.comment else replace(key, comment=own.comments.get(key.path, "")) for key in keys
    ]


def use_extensions(args: argparse.Namespace) -> None:
    """Add the YAML folder and the components of the user that a command line names."""
    conf_folders.use(args.config_dir)
    plugins.import_plugins(args.plugin, "--plugin")
