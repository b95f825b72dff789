"""Figures of docs/results by study, and the components and experiments that a study runs, read from
YAML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from runner import CONF
from runner.catalogue.list_and_show import selected_components
from runner.disk.yaml_comments import Loader

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Shown:
    """A figure, and the study or the experiment that made it."""

    file: Path
    source: str


def read_yaml_of(group: str, name: str) -> Any:
    path = CONF / group / f"{name}.yaml"
    return yaml.load(path.read_text(encoding="utf-8"), Loader=Loader) if path.is_file() else None


def _texts(content: Any) -> list[str]:
    """All texts in a YAML value."""
    if isinstance(content, dict):
        return [text for key, value in content.items() for text in (*_texts(value), str(key))]
    if isinstance(content, list):
        return [text for value in content for text in _texts(value)]
    return [content] if isinstance(content, str) else []


@cache
def about(name: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Experiments, and components by role, that a study (or an experiment) runs."""
    study = read_yaml_of("study", name)
    rows = (study or {}).get("rows") or []
    experiments = {row["experiment"] for row in rows if row.get("experiment")} if study else {name}
    role_pairs = {
        (role, chosen_)
        for e in experiments
        for role, chosen_ in selected_components(read_yaml_of("experiment", e)).items()
    }
    role_pairs |= {("model", row["model"]) for row in rows if row.get("model")}
    for text in _texts(rows) + _texts((study or {}).get("overrides")):
        for role, value in re.findall(r"\b(dataset|model|inference|attacker|gradient)=(\w+)", text):
            role_pairs.add((role, value))
    return frozenset(experiments), frozenset(role_pairs)


@cache
def figures() -> tuple[Shown, ...]:
    """Figures of docs/results, each with the study or experiment in its file name: the longest name
    that fits."""
    names = {
        path.stem for group in ("study", "experiment") for path in (CONF / group).glob("*.yaml")
    }
    entries = []
    for file in sorted(RESULTS.glob("*.png")):
        owners = [name for name in names if file.stem == name or file.stem.startswith(f"{name}_")]
        if owners:
            entries.append(Shown(file, max(owners, key=len)))
    return tuple(entries)


def of_component(role: str, name: str) -> Shown | None:
    """The figure of the study that runs a component and the fewest others; None if no study runs
    it."""
    fitting = [figure for figure in figures() if (role, name) in about(figure.source)[1]]
    return min(fitting, key=lambda shown: len(about(shown.source)[1]), default=None)


def of_experiment(name: str) -> Shown | None:
    """The figure named after an experiment, or else the figure of the study with the fewest
    experiments that runs it."""
    matches = [figure for figure in figures() if figure.source == name]
    fitting = matches or [figure for figure in figures() if name in about(figure.source)[0]]
    return min(fitting, key=lambda shown: len(about(shown.source)[0]), default=None)
