"""Example command of a component: its own experiment, or one in which it replaces a component of its
role."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components import registry
from runner.catalogue.declarations import catalogue, declaration
from runner.catalogue.list_and_show import options, selected_components
from runner.catalogue.partners import partners
from scripts.results_figures import read_yaml_of

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@cache
def parts_of(experiment: str) -> dict[str, str]:
    """Components of an experiment by role."""
    return selected_components(read_yaml_of("experiment", experiment))


def _holds(experiment: str, role: str, name: str) -> bool:
    """True if an experiment contains a given gradient or block."""
    holder, field = {"gradient": ("inference", "gradient"), "block": ("model", "blocks")}[role]
    content: dict[str, Any] = read_yaml_of("experiment", experiment) or {}
    value = (content.get(holder) or {}).get(field)
    parts = value if isinstance(value, list) else [value]
    return name in [part.get("name") if isinstance(part, dict) else part for part in parts]


@cache
def fitting(role: str, name: str) -> dict[str, tuple[str, ...]]:
    """Compatible components of other roles, by role."""
    pairs = partners(role, declaration(role, name))
    return {other: tuple(names.split(", ")) for other, names in pairs}


def option_of(role: str, name: str) -> str:
    """Override that chooses a component."""
    given = registry.ROLES[role].given
    return given.format(name) if given else f"{role}={name}"


def _hosts(role: str, name: str) -> list[str]:
    """Compatible experiments, those with a component of the same family first."""
    entry = declaration(role, name)
    needed = fitting(role, name)
    family = {e.name for e in catalogue(role) if e.file.parent == entry.file.parent}

    def is_host(experiment: str) -> bool:
        parts = parts_of(experiment)
        fits = all(parts.get(other) in names for other, names in needed.items())
        measures = parts.get("inference") == "gradient_variance" and role != "dataset"
        return fits and not measures and (role != "attacker" or role in parts)

    def order(experiment: str) -> tuple[bool, bool, int, str]:
        parts = parts_of(experiment)
        return (
            parts.get(role) not in family,
            "attacker" in parts and role != "attacker",
            len(experiment),
            experiment,
        )

    return sorted(filter(is_host, options("experiment")), key=order)


def example_command(role: str, name: str) -> str | None:
    """Command that runs a component; None if it requires files of the user."""
    command = TABLE["commands"].get(role, {}).get(name)
    if command:
        return f"runner +experiment={command}"
    if role in registry.CHOSEN:
        experiments = [e for e in options("experiment") if parts_of(e).get(role) == name]
    else:
        experiments = [e for e in options("experiment") if _holds(e, role, name)]
    if experiments:
        # the experiment named after the component, or else the shortest name
        best = min(experiments, key=lambda e: (name not in e, len(e), e))
        return f"runner +experiment={best}"
    if name in TABLE["needs_files"].get(role, ()):
        return None
    hosts = _hosts(role, name)
    return f"runner +experiment={hosts[0]} {option_of(role, name)}" if hosts else None
