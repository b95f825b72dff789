"""``runner schema``: all YAML files of the runner are valid, and mistakes are rejected."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from components import registry
from runner import CONF
from runner.arena.schemas.command import main
from runner.arena.schemas.types import DEFINITIONS, parse_words
from runner.catalogue.new import create
from runner.commands.cli import _answer
from runner.disk.read_yaml import load_untrusted

MISTAKES = Path(__file__).with_name("schema_mistakes.txt").read_text("utf-8").splitlines()
GROUPS = {"experiment": "experiment", "study": "study", "suite": "arena"}


@pytest.fixture(scope="module")
def validators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas")
    assert main(["schema", "--to", str(folder)]) == 0
    schemas = {kind: json.loads((folder / f"{kind}.json").read_text("utf-8")) for kind in GROUPS}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    return {kind: Draft202012Validator(schema) for kind, schema in schemas.items()}


@pytest.mark.parametrize("kind", GROUPS)
def test_files_of_the_runner_are_valid(validators, kind):
    paths = sorted((CONF / GROUPS[kind]).glob("*.yaml"))
    assert len(paths) >= 10
    wrong = {path.stem for path in paths if not validators[kind].is_valid(load_untrusted(path))}
    assert wrong == set()


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_rejected(validators, line):
    file, path, value = line.split(" | ")
    kind, name = file.split()
    content = load_untrusted(CONF / GROUPS[kind] / f"{name}.yaml")
    assert validators[kind].is_valid(content)
    *parents, key = path.split(".")
    mapping = content
    for parent in parents:
        mapping = (
            mapping[int(parent)] if isinstance(mapping, list) else mapping.setdefault(parent, {})
        )
    mapping[int(key) if isinstance(mapping, list) else key] = yaml.safe_load(value)
    assert not validators[kind].is_valid(content)


@pytest.mark.parametrize("role", ["experiment", "study"])
def test_new_files_name_their_schema_and_fit_it(validators, role, tmp_path):
    _, path = sorted(create(role, "my_own", tmp_path), key=lambda one: one.suffix == ".yaml")
    lines = path.read_text("utf-8").splitlines()
    assert f"# yaml-language-server: $schema=../schemas/{role}.json" in lines[:2]
    assert validators[role].is_valid(load_untrusted(path))


def test_users_components_are_included(tmp_path, monkeypatch):
    create("inference", "own_method", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["--to", "schemas", "--config-dir", "conf", "--plugin", "own_method"]
    assert _answer(["schema", *words]) == 0
    registry._registered.pop(("inference", "own_method"))
    sys.modules.pop("own_method")
    definitions = json.loads((tmp_path / "schemas" / "experiment.json").read_text())["$defs"]
    assert "inference/own_method" in definitions
    key = definitions["inference/sgld"]["properties"]["step_size"]
    assert key["default"] > 0
    assert "drift" in key["description"]


VALUES = [
    None,
    True,
    3,
    -3,
    0.5,
    2.5,
    "8/255",
    "${seed}",
    "adam",
    "other",
    [],
    [1],
    [None],
    {"a": 1},
]


@pytest.mark.parametrize(
    ("words", "valid"),
    [
        ("integer > 0 or null", [None, 3]),
        ("number ≥ 0, < 1", [0.5]),
        ("adam | sgd", ["adam"]),
        ("true or false", [True]),
        ("list of number > 0, at least 1 of them", [[1]]),
        ("list of number or null", [None, [], [1], [None]]),
        ("mapping to number", [{"a": 1}]),
        ("{a: …, b: …} or null", [None, {"a": 1}]),
    ],
)
def test_types_in_words_are_parsed(words, valid):
    validator = Draft202012Validator(parse_words(words) | {"$defs": DEFINITIONS})
    ratio = ["8/255"] if words.startswith(("integer", "number")) else []
    accepted = [repr(value) for value in VALUES if validator.is_valid(value)]
    assert sorted(accepted) == sorted(map(repr, [*valid, *ratio, "${seed}"]))
