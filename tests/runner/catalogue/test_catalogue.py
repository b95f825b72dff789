"""Comments and declarations of components agree with their YAML and classes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, ClassVar, Literal

import pytest
import yaml
from pydantic import Field, PositiveInt
from support.runs.configured import COMPONENTS

from components import registry
from components.contracts import roles
from components.contracts.requirements import Requirements
from components.contracts.roles import Component, ZeroToOne
from runner import CONF
from runner.catalogue.class_description import describe_class
from runner.catalogue.declarations import CONFIG, declaration, read_index
from runner.catalogue.list_and_show import (
    explain_keys,
)
from runner.catalogue.settings import Settings
from runner.catalogue.sub_commands import COMMANDS
from runner.disk.yaml_comments import read_keys, read_text
from scripts.index import describe_command

FILES = sorted(CONF.rglob("*.yaml"))


def leaves(content: object, prefix: str = "") -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in content.items() if isinstance(content, dict) else []:
        out[f"{prefix}{key}"] = value
        out |= leaves(value, f"{prefix}{key}.")
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_reader_agrees_with_the_parser_on_every_yaml(path):
    keys, content = read_text(path.read_text())
    expected = leaves(content)
    for key in keys:
        value = expected[key.path]
        if not key.nested and not (isinstance(value, str) and key.text == " ".join(value.split())):
            assert yaml.safe_load(key.text) == value
    # Mappings in flow style, {a: b}, are one line of their parent.
    missing = set(expected) - {key.path for key in keys}
    assert all(
        any(m.startswith(f"{k.path}.") and k.text.startswith("{") for k in keys) for m in missing
    )


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_every_key_of_every_component_has_a_comment_and_a_type(role, name):
    path = CONF / role / f"{name}.yaml"
    if not path.exists():
        pytest.skip("the contract test reports the missing YAML")
    declared = declaration(role, name)
    for key in explain_keys(read_text(path.read_text())[0], declared):
        if key.path != "name":
            assert key.comment, f"{role}.{key.path} has no comment"
            assert declared.fields.get(key.path.split(".")[0]), f"{role}.{key.path} has no type"


def test_shared_key_is_documented_once():
    """A key declared in a shared class has its comment there; a YAML has its own comment only if it
    adds information."""
    for role, name in COMPONENTS:
        declared = declaration(role, name)
        shared = {
            key
            for base in registry.get(role, name).__mro__[1:]
            for key in vars(base).get("__annotations__", ())
        }
        for key in read_text((CONF / role / f"{name}.yaml").read_text())[0]:
            if key.path in shared and key.comment:
                assert key.comment != declared.comments.get(key.path), (
                    f"{role}.{key.path} of {name} repeats it"
                )


def test_comments_are_read_inline_above_and_continued():
    keys = read_keys(
        "# @package _global_\n"
        "# the meaning of a\n"
        "a: 1\n"
        "b: 'x # y'  # a quoted sign is part of a value\n"
        "c: [1, 2]   # begins here\n"
        "            # and continues\n"
        "# a heading, not about d\n"
        "\n"
        "d:          # holds more\n"
        "  e: null   # nested\n"
        "  f:\n"
        "f: x#y\n"
        "g:\n"
        "  - one\n"
        "  - {two: 2}\n"
        "h: >-\n"
        "  folded\n"
        "  text\n"
    )
    described = {key.path: (key.text, key.comment) for key in keys}
    assert described == {
        "a": ("1", "the meaning of a"),
        "b": ("'x # y'", "a quoted sign is part of a value"),
        "c": ("[1, 2]", "begins here and continues"),
        "d": ("", "holds more"),
        "d.e": ("null", "nested"),
        "d.f": ("null", ""),
        "f": ("x#y", ""),
        "g": ("[one, {two: 2}]", ""),
        "h": ("folded text", ""),
    }


def test_types_are_described_in_words():
    class Base(Component):
        requires = Requirements(kinds=frozenset({"game"}), batch_kind="rows")
        width: PositiveInt  # of a layer

    class Thing(Base):
        """One."""

        requires = Requirements(batch_kind="episode")
        label_kind: ClassVar[str | None] = "real"
        link: Literal["probit", "logit"]
        # in units
        # of a step
        rate: Annotated[float, Field(gt=0, le=1)]
        rows: Annotated[int, Field(ge=1, le=9)] | None  # used rows
        p: ZeroToOne
        widths: list[PositiveInt]
        levels: Annotated[list[float], Field(min_length=1)]
        share: float | bool | None
        inner: roles.Model | None

    described = describe_class(Thing)
    assert described.fields == {
        "width": "integer > 0",
        "link": "probit | logit",
        "rate": "number > 0, ≤ 1",
        "rows": "integer ≥ 1, ≤ 9 or null",
        "p": "number ≥ 0, ≤ 1",
        "widths": "list of integer > 0",
        "levels": "list of number, at least 1 of them",
        "share": "number or true or false or null",
        "inner": "name of a model, or {name: …, its keys} or null",
    }
    assert described.comments == {
        "width": "of a layer",
        "rate": "in units of a step",
        "rows": "used rows",
    }
    assert described.nested_roles == {"inner": "model"}
    assert described.integers == {"width", "rows", "widths"}
    assert described.numbers == {*described.integers, "rate", "p", "levels", "share"}
    assert (described.docstring, described.facts["label_kind"], described.kinds) == (
        "One.",
        "real",
        {"game"},
    )


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_index_has_the_declarations_of_the_class(role, name):
    described = asdict(describe_class(registry.get(role, name), role, name))
    assert asdict(read_index()[f"{role}/{name}"]) == described, "run make index"


def test_index_has_only_the_run_level_keys():
    indexed = read_index()
    commands = {f"command/{name}" for name in COMMANDS}
    assert indexed.keys() == {CONFIG, *commands, *(f"{role}/{name}" for role, name in COMPONENTS)}
    for name in COMMANDS:
        assert asdict(indexed[f"command/{name}"]) == asdict(describe_command(name))
    assert asdict(indexed[CONFIG]) == asdict(describe_class(Settings)), "run make index"
