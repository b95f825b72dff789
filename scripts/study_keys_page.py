"""``python -m scripts.study_keys_page``: docs/study_keys.md, every key of a study.

Keys, types and defaults are those of ``StudyDefinition`` and the models in it; meanings are the
comments at their declarations; examples are from the studies of ``conf/study``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from runner import CONF
from runner.catalogue import new
from runner.catalogue.class_description import describe_class
from runner.disk.yaml_limits import read_yaml
from runner.study.definition import StudyDefinition

PAGE = Path(__file__).resolve().parent.parent / "docs" / "study_keys.md"
TEMPLATE = Path(new.__file__).parent / "templates" / "study" / "conf.yaml.j2"
FIRST_STUDIES = ("sarcos_table", "tan_table", "bnn_uci_table")  # examples are theirs, if possible
NAME_TYPE = "text"  # of ``name``, which declarations of components leave out
WIDTH = 60  # letters of an example, unless all are longer
# keys that several models have and that are declared without a comment
COMMON = {
    "kind": "what is drawn",
    "metric": "score that is shown or drawn",
    "metrics": "scores that are drawn",
    "name": "name of its files",
    "table": "name of the table that is ranked",
    "title": "heading in the report",
}
HEAD = """# Keys of a study

Written by `make study-keys` from the models in `runner/study`; do not edit.

A study is one YAML file, `conf/study/<name>.yaml`. It lists runs and says how their scores are laid
out as tables and figures. `runner study <name>` does the runs, `runner report <name>` writes the
report, and `runner show study/<name>` prints it with a line for each key.
`runner new study <name>` writes one to start from:

```yaml
{example}
```

Every entry of `rows` is run once for each combination of values in `grid`. A row's name is its
label and its preset, as in `"mMDGP, tuned"`; other keys refer to rows by it. Values of the grid key
`seed` are no columns: they are pooled as more replicates. A key that is not on this page is
refused, with the nearest one that exists.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD.format(example=_template()), *_sections()])


def _template() -> str:
    """The study that ``runner new study`` writes."""
    return TEMPLATE.read_text(encoding="utf-8").replace("{{ name }}", "my_study").strip()


# ---- models
# --------------------------------------------------------------------------------------------------
def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Models within a type: a list or a union of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_in(inner)]


def parts() -> Iterator[tuple[str, type[BaseModel], str]]:
    """Key of a study that has entries, the model of one of them, and its heading."""
    for key, field in StudyDefinition.model_fields.items():
        models = models_in(field.annotation)
        for model in models:
            kind = f", kind {_kinds(model)[0]}" if len(models) > 1 and _kinds(model) else ""
            yield key, model, f"An entry of {key}{kind}"


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field else ()


def _sections() -> Iterator[str]:
    entries = read_studies()
    yield from _section("A study", StudyDefinition, entries)
    for key, model, heading in parts():
        inner = [
            (name, entry)
            for name, content in entries
            for entry in _listed(content.get(key))
            if _is_of(model, entry)
        ]
        yield from _section(heading, model, inner)


def _listed(value: Any) -> list[dict[str, Any]]:
    """Entries of a key: a list, or one mapping."""
    return [value] if isinstance(value, dict) else value or []


def _is_of(model: type[BaseModel], entry: dict[str, Any]) -> bool:
    """True if an entry may be of a model: some have a kind."""
    kinds = _kinds(model)
    default = model.model_fields["kind"].default if kinds else None
    return not kinds or entry.get("kind", default) in kinds


@cache
def read_studies() -> list[tuple[str, dict[str, Any]]]:
    """Name and content of every study, those of ``FIRST_STUDIES`` first."""
    names = sorted(path.stem for path in (CONF / "study").glob("*.yaml"))
    order = [*FIRST_STUDIES, *(name for name in names if name not in FIRST_STUDIES)]
    return [(name, read_yaml(CONF / "study" / f"{name}.yaml")) for name in order]


# ---- tables
# --------------------------------------------------------------------------------------------------
def _section(
    heading: str, model: type[BaseModel], entries: list[tuple[str, dict[str, Any]]]
) -> Iterator[str]:
    """A heading, a sentence, and a table of the keys of a model."""
    sentence = " ".join((inspect.getdoc(model) or "").split())
    yield f"\n## {heading}\n\n{sentence.replace('``', '`')}\n"
    yield "| key | type | default | meaning | example |\n| --- | --- | --- | --- | --- |"
    declared = describe_class(model)
    for key, field in model.model_fields.items():
        inner = models_in(field.annotation)
        cells = (
            f"`{key}`",
            _links(key) if inner else _cell(declared.fields.get(key, NAME_TYPE)),
            _default(field),
            _cell(declared.comments.get(key) or _meaning(key, inner)),
            "below" if inner else _example(key, entries),
        )
        yield f"| {' | '.join(cells)} |"


def _meaning(key: str, inner: list[type[BaseModel]]) -> str:
    """Meaning of a key without a comment: its entries say what they are."""
    if not inner:
        return COMMON.get(key, "")
    sentences = (" ".join((inspect.getdoc(model) or "").split()) for model in inner)
    return " ".join(sentence.split(". ")[0].rstrip(".") + "." for sentence in sentences)


def _links(key: str) -> str:
    """Links to the sections of what a key holds."""
    headings = [heading for part, _, heading in parts() if part == key]
    links = (f"[entries](#{h.lower().replace(' ', '-').replace(',', '')})" for h in headings)
    return f"list of {' or '.join(links)}"


def _default(field: FieldInfo) -> str:
    """A default as it is typed in YAML."""
    if field.is_required():
        return "required"
    return f"`{_flow(field.default)}`"


def _example(key: str, entries: list[tuple[str, dict[str, Any]]]) -> str:
    """A value from a study: the first short one, or the shortest."""
    given = [(_flow(entry[key]), name) for name, entry in entries if entry.get(key) is not None]
    short = next((one for one in given if 0 < len(one[0]) <= WIDTH), None)
    if short is None and given:
        short = min(given, key=lambda one: len(one[0]))
    if short is None:
        return ""
    text = short[0] if len(short[0]) <= 2 * WIDTH else f"{short[0][: 2 * WIDTH]}…"
    return f"`{text}`".replace("|", "\\|")


def _flow(value: object) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("...\n").strip()


def _cell(text: str) -> str:
    text = re.sub(r"\bNone\b", "null", text)
    return text.replace("|", "\\|").replace("``", "`").replace("->", "→")


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
