"""Candidates for overrides: roles, experiments, keys and their values, from YAML files and the
index of components."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from components import registry
from runner import CONF
from runner.catalogue.class_declaration import ClassDeclaration
from runner.catalogue.declarations import CONFIG, catalogue, read_index
from runner.catalogue.list_and_show import choose_components, explain_keys, options, read_keys
from runner.disk import conf_folders
from runner.disk.yaml_comments import ParsedYaml
from runner.errors import ConfigError

Candidate = tuple[str, str]  # text to insert, and its meaning

LAUNCHERS = {
    "joblib": "hydra_joblib_launcher",
    "submitit_local": "hydra_submitit_launcher",
    "submitit_slurm": "hydra_submitit_launcher",
    "ray": "hydra_ray_launcher",
}


def without_meaning(names: Iterable[str]) -> list[Candidate]:
    """Candidates without an explanation."""
    return [(name, "") for name in names]


def _own(role: str, name: str) -> ClassDeclaration:
    """Declarations of a component's class, or of the run-level keys (role "").

    Empty for plug-ins: tab completion does not run users' code.
    """
    return read_index().get(f"{role}/{name}" if role else CONFIG, ClassDeclaration())


def _at(path: list[str], words: list[str]) -> tuple[str, list[str]]:
    """Role at a dotted path, through nested components, and the components allowed there.

    The component is the one named on the command line or in a YAML, otherwise any component of the role.
    The role is "" if the path does not exist."""
    role, *rest = path
    if role not in registry.CHOSEN:
        return "", []
    overrides = choose_components(words)
    name = overrides.get(role)
    reached = role
    while True:
        names = [name] if name in options(role) else options(role)
        if not rest:
            return role, names
        key, *rest = rest
        holder = next((n for n in names if key in _own(role, n).nested_roles), None)
        if holder is None:
            return "", []
        reached = f"{reached}.{key}"
        content = _read(role, holder)[1] or {}
        role = _own(role, holder).nested_roles[key]
        name = overrides.get(reached, content.get(key))


def _read(role: str, name: str) -> ParsedYaml:
    """Keys and content of a component's YAML; empty if it cannot be read."""
    path = conf_folders.find(role, name)
    with suppress(ConfigError):
        return read_keys(path) if path else ([], None)
    return [], None


def _keys(word: str, words: list[str]) -> list[Candidate]:
    """Groups and run-level keys; after ``role.``, the keys of its component and of nested ones."""
    prefix, dot, _ = word.rpartition(".")
    role, names = _at(prefix.split("."), words) if dot else ("", [])
    if role:
        candidates: dict[str, str] = {}
        for name in names:
            declaration = _own(role, name)
            for key in explain_keys(_read(role, name)[0], declaration):
                if key.path != "name":
                    suffixes = (
                        "=." if key.path in declaration.nested_roles else "." if key.nested else "="
                    )
                    for end in suffixes:
                        candidates.setdefault(
                            f"{prefix}.{key.path}{end}", f"{key.text}  {key.comment}"
                        )
        return list(candidates.items())
    out = [
        ("+experiment=", "a complete experiment"),
        ("hydra/launcher=", "where jobs run"),
        ("hydra/sweeper=", "how a sweep chooses values"),
    ]
    for group in registry.CHOSEN:
        out += [(f"{group}=", f"choose the {group}"), (f"{group}.", f"a key of the {group}")]
    types = _own("", "").fields
    out += [
        (f"{key.path}=", key.comment)
        for key in read_keys(CONF / "config.yaml")[0]
        if key.path in types
    ]
    return out


def component_candidates(role: str) -> list[Candidate]:
    """Components of a role, each with its summary."""
    about = {entry.name: entry.sentence for entry in catalogue(role)}
    return [(name, about.get(name, "")) for name in options(role)]


def _values(key: str, words: list[str]) -> list[Candidate]:
    """Values of ``key=``: names of a group, allowed values of a key, true and false."""
    plain = key.lstrip("+~")
    if plain in registry.CHOSEN:
        return component_candidates(plain)
    if plain in ("experiment", "published"):
        return without_meaning(options(plain))
    if plain in ("hydra/launcher", "hydra/sweeper"):
        return _launchers_or_sweepers(plain)
    if plain == "device":
        return [("cpu", ""), ("cuda", "the GPU")]
    if plain == "plugins":
        return [(f"[{name}]", path) for name, path in modules(words)]
    return _listed_values(plain, words)


def _listed_values(key: str, words: list[str]) -> list[Candidate]:
    """Values of a component's key, from the chosen component, or else from the first component
    with such a key and listed values."""
    prefix, dot, last = key.rpartition(".")
    role, names = _at(prefix.split("."), words) if dot else ("", [""])
    first: list[Candidate] | None = None
    for name in names if role or not dot else []:
        declaration = _own(role, name)
        values = _members(declaration, last) if last in declaration.fields else None
        if values and values != [("null", "")]:
            return values
        first = values if first is None else first
    return first or []


def _launchers_or_sweepers(group: str) -> list[Candidate]:
    """Names of Hydra's default, of YAML files and of installed plug-ins."""
    choices = {"basic", *options(group)}
    if group == "hydra/launcher":
        choices |= {
            n for n, m in LAUNCHERS.items() if importlib.util.find_spec("hydra_plugins." + m)
        }
    return without_meaning(sorted(choices))


def _members(own: ClassDeclaration, key: str) -> list[Candidate]:
    """Allowed values of a component's key, if its declaration lists them."""
    kind = own.fields[key]
    null_choice = [("null", "")] if kind.endswith(" or null") else []
    if key in own.nested_roles:
        return component_candidates(own.nested_roles[key]) + null_choice
    members = kind.removesuffix(" or null")
    out = (
        ["true", "false"]
        if members == "true or false"
        else members.split(" | ")
        if " | " in members
        else []
    )
    return without_meaning(out) + null_choice


def override_candidates(word: str, words: list[str]) -> list[Candidate]:
    """Completions of the last word of a command line if that word is an override."""
    if "=" not in word:
        if word.startswith("~"):
            return [(f"~{role}", f"leave the {role} out") for role in registry.CHOSEN]
        return _keys(word, words)
    key, _, typed = word.partition("=")
    prefix = f"{key}={typed[: typed.rfind(',') + 1]}"  # a sweep: model=smdgp,mm<TAB>
    return [(prefix + value, meaning) for value, meaning in _values(key, words)]


def modules(_: list[str]) -> list[Candidate]:
    """Modules of the current folder and of PYTHONPATH that may be plug-ins; none is imported."""
    folders = [Path(), *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
    paths = {
        path.stem: str(path) for folder in reversed(folders) for path in sorted(folder.glob("*.py"))
    }
    return [
        (name, path)
        for name, path in sorted(paths.items())
        if name.isidentifier() and not name.startswith("_")
    ]
