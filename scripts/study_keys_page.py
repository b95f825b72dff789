"""The page of the site with every key of a study.

Keys, types and defaults come from ``StudyDefinition`` and its nested models; meanings are the
comments of their declarations; examples come from the studies of ``conf/study``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from runner import CONF
from runner.catalogue import new
from runner.catalogue.class_description import describe_class
from runner.disk.read_yaml import load_untrusted
from runner.study.definition import StudyDefinition
from scripts.pages import render

TEMPLATE = Path(new.__file__).parent / "templates" / "study" / "conf.yaml.j2"
FIRST_STUDIES = ("sarcos_table", "tan_table", "bnn_uci_table")  # preferred sources of examples
NAME_TYPE = "text"  # type of ``name``, which is missing from declarations of components
WIDTH = 60  # largest length of an example, if possible
# keys shared by several models and declared without a comment
COMMON = {
    "kind": "kind of figure",
    "metric": "score to show or draw",
    "metrics": "scores to draw",
    "name": "file name",
    "table": "name of the ranked table",
    "title": "heading in the report",
}
Entries = list[tuple[str, dict[str, Any]]]  # study, and its entry at a key


def page() -> str:
    """Text of the page."""
    example = TEMPLATE.read_text(encoding="utf-8").replace("{{ name }}", "my_study").strip()
    return render("study_keys", example=example, sections=_sections())


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Models inside a list or union type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_in(inner)]


def parts() -> Iterator[tuple[str, type[BaseModel], str]]:
    """Keys of a study with entries: key, model of an entry, and heading."""
    for key, field in StudyDefinition.model_fields.items():
        models = models_in(field.annotation)
        for model in models:
            kind = f", kind {_kinds(model)[0]}" if len(models) > 1 and _kinds(model) else ""
            yield key, model, f"An entry of {key}{kind}"


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field else ()


def _sections() -> Iterator[tuple[str, str, list[Iterable[str]]]]:
    """Heading, summary and keys of a study and of each nested model."""
    studies = read_studies()
    yield _section("A study", StudyDefinition, studies)
    for key, model, heading in parts():
        entries = [
            (name, entry) for name, study in studies for entry in _to_entries(study.get(key))
        ]
        yield _section(heading, model, [each for each in entries if _is_of(model, each[1])])


def _to_entries(value: Any) -> list[dict[str, Any]]:
    """Entries of a key, which has a list or a single mapping."""
    return [value] if isinstance(value, dict) else value or []


def _is_of(model: type[BaseModel], entry: dict[str, Any]) -> bool:
    """True if an entry may belong to a model, according to its kind."""
    kinds = _kinds(model)
    default = model.model_fields["kind"].default if kinds else None
    return not kinds or entry.get("kind", default) in kinds


@cache
def read_studies() -> Entries:
    """Names and contents of all studies, ``FIRST_STUDIES`` first."""
    names = sorted(path.stem for path in (CONF / "study").glob("*.yaml"))
    order = [*FIRST_STUDIES, *(name for name in names if name not in FIRST_STUDIES)]
    return [(name, load_untrusted(CONF / "study" / f"{name}.yaml")) for name in order]


def _section(
    heading: str, model: type[BaseModel], entries: Entries
) -> tuple[str, str, list[Iterable[str]]]:
    """Section of a model: heading, summary, and a line for each key."""
    declared = describe_class(model)
    keys: list[Iterable[str]] = []
    for key, field in model.model_fields.items():
        inner = models_in(field.annotation)
        keys.append(
            (
                f"`{key}`",
                _links(key) if inner else _cell(declared.fields.get(key, NAME_TYPE)),
                "required" if field.is_required() else f"`{_flow(field.default)}`",
                _cell(declared.comments.get(key) or _meaning(key, inner)),
                "below" if inner else _example(key, entries),
            )
        )
    return heading, _sentence(model).replace("``", "`"), keys


def _sentence(model: type[BaseModel]) -> str:
    """Docstring of a model in one line."""
    return " ".join((inspect.getdoc(model) or "").split())


def _meaning(key: str, inner: list[type[BaseModel]]) -> str:
    """Meaning of a key without a comment, from its entries."""
    if not inner:
        return COMMON.get(key, "")
    return " ".join(_sentence(model).split(". ")[0].rstrip(".") + "." for model in inner)


def _links(key: str) -> str:
    """Links to the sections of the entries of a key."""
    headings = [heading for part, _, heading in parts() if part == key]
    links = (f"[entries](#{h.lower().replace(' ', '-').replace(',', '')})" for h in headings)
    return f"list of {' or '.join(links)}"


def _example(key: str, entries: Entries) -> str:
    """Example value from a study: the first short one, or the shortest."""
    texts = [_flow(entry[key]) for _, entry in entries if entry.get(key) is not None]
    if not texts:
        return ""
    text = next((t for t in texts if 0 < len(t) <= WIDTH), min(texts, key=len))
    cut = text if len(text) <= 2 * WIDTH else f"{text[: 2 * WIDTH]}…"
    return f"`{cut}`".replace("|", "\\|")


def _flow(value: object) -> str:
    """Format a value as one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("...\n").strip()


def _cell(text: str) -> str:
    text = re.sub(r"\bNone\b", "null", text)
    return text.replace("|", "\\|").replace("``", "`").replace("->", "→")
