"""What there is, read from YAML and docstrings without importing torch; ``runner show``."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from components import registry
from runner import CONF
from runner.catalogue import plugins
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import (
    CONFIG,
    Entry,
    catalogue,
    declaration,
    read_entry,
    read_index,
)
from runner.catalogue.partners import as_set, partners
from runner.catalogue.study_text import print_study
from runner.disk import conf_folders
from runner.disk.read_yaml import YAML_READ_ERRORS, describe_read_error, reading
from runner.disk.yaml_comments import YamlKey, read_file
from runner.disk.yaml_limits import check_file, read_yaml
from runner.errors import ConfigError, display_path, nearest
from runner.terminal.arguments import Parser, add_json
from runner.terminal.tables import print_json, print_table

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
    with reading(path):
        check_file(path)
        return read_file(path)


def selected_components(content: Any, within: tuple[str, ...] = ()) -> dict[str, str]:
    """The components that an experiment's ``defaults`` list picks, itself or through the
    experiments it is derived from: role -> name, in the order of the roles."""
    selection: dict[str, str] = {}
    for entry in (content or {}).get("defaults") or []:
        if isinstance(entry, str):
            name = entry.removeprefix("/").removeprefix("experiment/")
            path = conf_folders.find("experiment", name)
            if name not in within and path is not None:
                selection |= selected_components(read_yaml(path), (*within, name))
            continue
        for key, value in entry.items() if isinstance(entry, dict) else []:
            role = key.removeprefix("override ").strip().lstrip("/").split("@")[0]
            if role in registry.CHOSEN and isinstance(value, str):
                selection[role] = value
    return {role: selection[role] for role in registry.CHOSEN if role in selection}


def _describe(path: Path) -> Row:
    """Name, one line and third column of an experiment, a study or a published table."""
    try:
        content = read_yaml(path)
    except YAML_READ_ERRORS as error:
        return path.stem, describe_read_error(path, error), ""
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
    return [_describe(find_file(group, name)) for name in options(group)]


def describe(role: str, name: str) -> tuple[Entry, ClassDeclaration]:
    """Catalogue entry and class declarations of a component.

    Raises:
        ConfigError: there is no component of that name.
    """
    if name in registry.names(role):
        return read_entry(role, name), declaration(role, name)
    if file := conf_folders.find(role, name):
        raise ConfigError(
            f"{role}/{name}: {display_path(file)} is there, its class is not; name its module, --plugin MODULE"
        )
    raise ConfigError(f"{role}/{name}: no such {role}{nearest(name, registry.names(role))}")


# ---- printing
# -------------------------------------------------------------------------------------------------------
def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, value in facts:
        if value:
            print(f"  {name:<9} {value}")


def explain_keys(keys: list[YamlKey], own: ClassDeclaration) -> list[YamlKey]:
    """Keys of a component's YAML, each with its comment.

    The comment is the key's own in the YAML, or the one next to its declaration in a
    class that several components share.
    """
    return [
        key if key.comment else replace(key, comment=own.comments.get(key.path, "")) for key in keys
    ]


def _key_rows(keys: list[YamlKey], types: dict[str, str], prefix: str = "") -> list[Row]:
    return [
        (f"{prefix}{key.path}", key.text, types.get(key.path, ""), key.comment)
        for key in keys
        if key.path not in ("name", "defaults")
        and not key.path.startswith("hydra")
        and not key.nested
    ]


# ---- the commands
# ---------------------------------------------------------------------------------------------------
def _as_objects(keys: list[Row], values: Any = None) -> list[dict[str, Any]]:
    """Keys for machines: the value as YAML has it, which the text shows as it is written."""

    def value(path: str) -> Any:
        node = values
        for word in path.split("."):
            node = node.get(word) if isinstance(node, dict) else None
        return node

    return [
        {"key": key, "value": value(key), "type": kind, "meaning": note}
        for key, _, kind, note in keys
    ]


def _show_component(role: str, name: str, as_json: bool) -> None:
    entry, declaration = describe(role, name)
    path = find_file(role, name)
    if as_json:
        keys, content = read_keys(path) if path.exists() else ([], {})
        own_keys = _key_rows(explain_keys(keys, declaration), declaration.fields)
        summary = {
            "role": role,
            "name": name,
            "sentence": entry.sentence,
            "source": entry.source,
            "file": entry.file,
        }
        print_json(
            [
                {
                    **summary,
                    "docstring": inspect.cleandoc(declaration.docstring),
                    "keys": _as_objects(own_keys, content),
                }
            ]
        )
        return
    print(f"{role}/{name}  {entry.sentence}")
    fit_text = "; ".join(
        f"{k} {', '.join(sorted(as_set(v)))}"
        for k, v in declaration.pairing_words.items()
        if as_set(v) and k != "gives"
    )
    # of the inference methods that hold one
    key = role if role in registry.CHOSEN else f"inference.{role}"
    used = f"{key}={name}" + (f"  {key}.<key>=…" if path.exists() else "")
    _print_facts(
        [("paper", entry.source), ("use", used), ("fits", fit_text), *partners(role, declaration)]
    )
    _print_facts([("code", os.path.relpath(entry.file))])
    print("\n" + inspect.cleandoc(declaration.docstring) + "\n")
    if not path.exists():
        print(f"no {role}/{name}.yaml: its defaults are not known")
        return
    keys, _ = read_keys(path)
    print_table(
        "",
        ("key", "default", "type", "meaning"),
        _key_rows(explain_keys(keys, declaration), declaration.fields, f"{role}."),
    )


def _show_file(group: str, name: str, as_json: bool) -> None:
    if name not in options(group):
        raise ConfigError(f"{group}/{name}: no such {group}{nearest(name, options(group))}")
    path = find_file(group, name)
    keys, content = read_keys(path)
    _, line, third = _describe(path)
    if as_json:
        print_json(
            [
                {
                    "group": group,
                    "name": name,
                    "sentence": line,
                    "file": path,
                    "choice": selected_components(content),
                    "content": content,
                }
            ]
        )
        return
    if group == "study":
        print_study(name, path)
        return
    print(f"{group}/{name}  {line}")
    use = f"runner +experiment={name}" if group == "experiment" else ""
    _print_facts([("use", use), ("file", os.path.relpath(path))])
    if group == "experiment":
        _print_facts(selected_components(content).items())
    else:
        _print_facts([("", third)])
    print()
    print_table(
        "",
        ("key", "value", "meaning"),
        [(key, text, note) for key, text, _, note in _key_rows(keys, {})],
    )


def _show_config(as_json: bool) -> None:
    keys, content = read_file(CONF / "config.yaml")
    types = read_index()[CONFIG].fields
    key_rows = [row for row in _key_rows(keys, types) if row[0] in types]
    if as_json:
        print_json(_as_objects(key_rows, content))
        return
    print("config  the run-level keys, the same for every experiment\n")
    print_table("", ("key", "default", "type", "meaning"), key_rows)


def use_extensions(args: argparse.Namespace) -> None:
    """Add the YAML folder and the components of the user that a command line names."""
    conf_folders.use(args.config_dir)
    plugins.import_plugins(args.plugin, "--plugin")


def show(argv: list[str]) -> int:
    """``runner show``."""
    parser = Parser(
        prog="runner show",
        description="Shows every key of a component, an experiment, a study or a published table, with its default, "
        "type and meaning; `runner show config` shows the run-level keys.",
        epilog="Exit code 0, or 2 for a name that does not exist. A study is YAML in block style; of everything "
        "else, keys are tab-separated lines where the output is no terminal.",
    )
    parser.add_argument("what", help="<role>/<name>, for instance inference/level_k; or config")
    add_json(parser)
    conf_folders.add_option(parser)
    plugins.add_option(parser, "a module of yours, whose components are among the others")
    args = parser.parse_args(argv)
    use_extensions(args)
    target = args.what.strip("/").removesuffix(".yaml")
    group, _, name = target.replace("=", "/").rpartition("/")
    group = group.lstrip("+")
    if target == CONFIG:
        _show_config(args.json)
        return 0
    if not group:
        groups = [
            g for g in GROUPS if name in (registry.names(g) if g in registry.ROLES else options(g))
        ]
        if len(groups) != 1:
            if groups:
                raise ConfigError(
                    f"{target}: there are {' and '.join(f'{g}/{name}' for g in groups)}; say which"
                )
            near = nearest(name, {n for g in GROUPS for n in options(g)} | {CONFIG})
            raise ConfigError(
                f"{target}: nothing has that name{near if 'mean' in near else ' (see runner list)'}"
            )
        group = groups[0]
    if group not in GROUPS:
        raise ConfigError(f"{target}: no such role as {group}{nearest(group, GROUPS)}")
    (_show_component if group in registry.ROLES else _show_file)(group, name, args.json)
    return 0


def main(argv: list[str]) -> int:
    """``show``, the first word of ``argv``."""
    return show(argv[1:])
