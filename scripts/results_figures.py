"""Which figure of docs/results is of which study, and which components and experiments a study is
about; from YAML alone."""

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
    of: str


def read_yaml_of(group: str, name: str) -> Any:
    path = CONF / group / f"{name}.yaml"
    return yaml.load(path.read_text(encoding="utf-8"), Loader=Loader) if path.is_file() else None


def _texts(content: Any) -> list[str]:
    """Every text in what YAML holds."""
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
    """Figures of docs/results whose study or experiment is told by their names, the longest name
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
    """The figure of the study that is about a component and about the fewest others; None: there is
    none."""
    fitting = [figure for figure in figures() if (role, name) in about(figure.of)[1]]
    return min(fitting, key=lambda shown: len(about(shown.of)[1]), default=None)


def of_experiment(name: str) -> Shown | None:
    """The figure of an experiment's own name, or else of the study with the fewest experiments that
    runs it."""
    matches = [figure for figure in figures() if figure.of == name]
    fitting = matches or [figure for figure in figures() if name in about(figure.of)[0]]
    return min(fitting, key=lambda shown: len(about(shown.of)[0]), default=None)
