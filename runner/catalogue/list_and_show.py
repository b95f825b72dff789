"""Contents of the catalogue, read from YAML and docstrings without importing torch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from components import registry
from runner import CONF
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import catalogue
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.disk.yaml_comments import ParsedYaml, YamlKey, read_text
from runner.errors import ConfigError

GROUPS = (*registry.ROLES, "experiment", "study", "published")
Row = tuple[str, ...]


def options(group: str) -> list[str]:
    """Names of a group on the command line: its YAML files."""
    return conf_folders.names(group)


def find_file(group: str, name: str) -> Path:
    """YAML file of one of a group's ``options``."""
    return conf_folders.find(group, name) or CONF / group / f"{name}.yaml"


def read_keys(path: Path) -> ParsedYaml:
    """Keys and content of a YAML file.

    Raises:
        ConfigError: the file is not valid YAML; the message gives the line.
    """
    content: ParsedYaml = load_untrusted(path, parse=read_text)
    return content


def selected_components(content: Any, within: tuple[str, ...] = ()) -> dict[str, str]:
    """Components in the ``defaults`` of an experiment and of the experiments that it inherits from:
    role -> name, in the order of the roles."""
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


def choose_components(words: Iterable[str]) -> dict[str, str]:
    """Values of overrides by key, with the components of the experiment among them by role."""
    chosen = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    file = conf_folders.find("experiment", chosen.get("experiment", ""))
    names = {} if file is None else _read_choice(file, file.stat().st_mtime_ns)
    return names | chosen


@cache
def _read_choice(file: Path, _changed: int) -> dict[str, str]:
    """Components chosen by an experiment, by role; empty for a damaged file, reported later."""
    with suppress(ConfigError):
        return selected_components(load_untrusted(file))
    return {}


def describe_file(path: Path) -> Row:
    """Name, summary and third column of an experiment, a study or a published table."""
    try:
        content = load_untrusted(path)
    except ConfigError as error:
        return path.stem, str(error), ""
    if not isinstance(content, dict):
        return path.stem, "", ""
    texts = (content.get("title"), content.get("description") or content.get("caption"))
    line = ": ".join(str(text) for text in texts if text)
    third = ", ".join(selected_components(content).values()) or ", ".join(
        str(content[k]) for k in ("source", "where") if isinstance(content.get(k), str)
    )
    return path.stem, " ".join(line.split()), " ".join(third.split())


def rows(group: str) -> list[Row]:
    """(name, summary, paper or components) of each member of a group."""
    if group in registry.ROLES:
        return [(entry.name, entry.sentence, entry.source) for entry in catalogue(group)]
    return [describe_file(find_file(group, name)) for name in options(group)]


def explain_keys(keys: list[YamlKey], own: ClassDeclaration) -> list[YamlKey]:
    """Keys of a component's YAML, each with its comment.

    The comment comes from the YAML, or from the declaration in the class if several
    components share the class.
    """
    return [
        key if key.comment else replace(key, comment=own.comments.get(key.path, "")) for key in keys
    ]
