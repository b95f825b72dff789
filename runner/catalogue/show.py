"""``runner show``: all keys of a component, an experiment, a study or a published table."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from components import registry
from runner import CONF
from runner.catalogue import plugins
from runner.catalogue.declarations import CONFIG, declaration, read_index
from runner.catalogue.list_and_show import (
    GROUPS,
    Row,
    describe_file,
    explain_keys,
    find_file,
    options,
    read_keys,
    selected_components,
)
from runner.catalogue.partners import partners
from runner.catalogue.study_text import print_study
from runner.disk.read_yaml import value_at
from runner.disk.yaml_comments import YamlKey
from runner.errors import ConfigError, nearest, similar
from runner.terminal.arguments import Parser
from runner.terminal.tables import columns_of_terminal, print_fact, print_json, print_table


class ShownKey(TypedDict):
    """A key with its parsed default."""

    key: str
    value: Any
    type: str
    meaning: str


class ShownComponent(TypedDict):
    """A component with its keys."""

    role: str
    name: str
    sentence: str
    source: str
    file: Path
    docstring: str
    keys: list[ShownKey]


class ShownFile(TypedDict):
    """An experiment, a study or a published table."""

    group: str
    name: str
    sentence: str
    file: Path
    choice: dict[str, str]
    content: Any


Shown = ShownKey | ShownComponent | ShownFile
FULL_LINE = 100  # columns of the lines of docstrings
LONG_LINE = 70  # a line with more columns continues in the next one


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, value in facts:
        if value:
            print_fact(f"  {name:<9} ", value)


def _key_rows(keys: list[YamlKey], types: dict[str, str], prefix: str = "") -> list[Row]:
    return [
        (f"{prefix}{key.path}", key.text, types.get(key.path, ""), key.comment)
        for key in keys
        if key.path not in ("name", "defaults")
        and not key.path.startswith("hydra")
        and not key.nested
    ]


def _as_objects(keys: list[Row], values: Any) -> list[ShownKey]:
    """Keys for JSON, with parsed values; the text output shows them as written."""
    return [
        {"key": key, "value": value_at(values, key), "type": kind, "meaning": note}
        for key, _, kind, note in keys
    ]


def _show_component(role: str, name: str, as_json: bool) -> None:
    declared = declaration(role, name, f"{role}/{name}", "--plugin MODULE")
    path = find_file(role, name)
    has_yaml = path.exists()
    keys, content = read_keys(path) if has_yaml else ([], {})
    explained = explain_keys(keys, declared)
    docstring = inspect.cleandoc(declared.docstring)
    if as_json:
        summary: ShownComponent = {
            "role": role,
            "name": name,
            "sentence": declared.sentence,
            "source": declared.source,
            "file": declared.file,
            "docstring": docstring,
            "keys": _as_objects(_key_rows(explained, declared.fields), content),
        }
        print_json([summary])
        return
    print_fact(f"{role}/{name}  ", declared.sentence)
    words = declared.pairing_words.items()
    fits = [f"{key} {', '.join(sorted(ws))}" for key, ws in words if ws and key != "gives"]
    # a gradient is a key of the inference methods that hold one
    key = role if role in registry.CHOSEN else f"inference.{role}"
    is_block = role == "block"
    _print_facts(
        [
            ("paper", declared.source),
            ("use", f"model.blocks=[{name}]" if is_block else f"{key}={name}  {key}.<key>=…"),
            ("fits", "; ".join(fits)),
            *partners(role, declared),
            ("code", os.path.relpath(declared.file)),
        ]
    )
    print()
    _print_docstring(docstring)
    print()
    if has_yaml:
        _print_keys(_key_rows(explained, declared.fields, "" if is_block else f"{key}."))
    else:
        print(f"{role}/{name}.yaml does not exist: defaults unknown")


def _print_docstring(docstring: str) -> None:
    """Print a docstring; paragraphs are rewrapped if the terminal is too narrow for its lines."""
    is_narrow = (columns_of_terminal() or FULL_LINE) < FULL_LINE
    paragraphs: list[tuple[str, str]] = []
    may_join = False
    for line in docstring.splitlines():
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        if may_join and text and paragraphs[-1][0] == indent and is_narrow:
            paragraphs[-1] = (indent, f"{paragraphs[-1][1]} {text}")
        else:
            paragraphs.append((indent, text))
        may_join = len(line) > LONG_LINE
    for indent, text in paragraphs:
        print_fact(indent, text)


def _print_keys(rows: list[Row]) -> None:
    print_table("", ("key", "default", "type", "meaning"), rows)


def _show_file(group: str, name: str, as_json: bool) -> None:
    if name not in options(group):
        raise ConfigError(f"{group}/{name}: no such {group}{nearest(name, options(group))}")
    path = find_file(group, name)
    keys, content = read_keys(path)
    _, line, third = describe_file(path)
    choice = selected_components(content)
    if as_json:
        print_json(
            [
                ShownFile(
                    group=group, name=name, sentence=line, file=path, choice=choice, content=content
                )
            ]
        )
        return
    if group == "study":
        print_study(name, path)
        return
    print_fact(f"{group}/{name}  ", line)
    is_experiment = group == "experiment"
    _print_facts(
        [
            ("use", f"runner +experiment={name}" if is_experiment else ""),
            ("file", os.path.relpath(path)),
            *(choice.items() if is_experiment else [("", third)]),
        ]
    )
    print()
    rows = [(key, text, note) for key, text, _, note in _key_rows(keys, {})]
    print_table("", ("key", "value", "meaning"), rows)


def _show_config(as_json: bool) -> None:
    keys, content = read_keys(CONF / "config.yaml")
    types = read_index()[CONFIG].fields
    key_rows = [row for row in _key_rows(keys, types) if row[0] in types]
    if as_json:
        print_json(_as_objects(key_rows, content))
        return
    print("config  the run-level keys, the same for every experiment\n")
    _print_keys(key_rows)


def _find_group(target: str, name: str) -> str:
    """Find the group of a name.

    Raises:
        ConfigError: the name is unknown or ambiguous.
    """
    names = {g: registry.names(g) if g in registry.ROLES else options(g) for g in GROUPS}
    groups = [group for group in GROUPS if name in names[group]]
    if len(groups) == 1:
        return groups[0]
    if groups:
        listed = " or ".join(f"{group}/{name}" for group in groups)
        raise ConfigError(f"{target}: ambiguous; choose {listed}")
    near = similar(name, {n for group in GROUPS for n in options(group)} | {CONFIG})
    raise ConfigError(f"{target}: unknown name{near or ' (see runner list)'}")


def main(argv: list[str]) -> int:
    """Execute ``runner show``; ``argv`` begins with ``show``."""
    parser = Parser(
        description="Show all keys of a component, an experiment, a study or a published table, with defaults, "
        "types and meanings; `runner show config` shows the run-level keys.",
        epilog="Exit code 0, or 2 for an unknown name. A study is printed as YAML; otherwise, in a "
        "pipe or file, the columns are separated by tabs.",
    )
    parser.add_argument("what", help="<role>/<name>, for instance inference/level_k; or config")
    plugins.add_own_options(parser, "a module with components of your own to include")
    args = parser.parse(argv)
    plugins.import_plugins(args.plugin, "--plugin")
    target = args.what.strip("/").removesuffix(".yaml")
    if target == CONFIG:
        _show_config(args.json)
        return 0
    group, _, name = target.replace("=", "/").rpartition("/")
    group = group.lstrip("+") or _find_group(target, name)
    if group not in GROUPS:
        raise ConfigError(f"{target}: no such role as {group}{nearest(group, GROUPS)}")
    show = _show_component if group in registry.ROLES else _show_file
    show(group, name, args.json)
    return 0
