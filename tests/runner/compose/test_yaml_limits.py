"""Untrusted YAML that expands beyond the limits is refused in one line before it is parsed."""

from __future__ import annotations

import time

import pytest
import yaml
from support.runs.made_records import make_record

import runner
from runner.commands.resume import read_run_config
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.disk.yaml_limits import (
    DEEPEST,
    MAX_VALUES,
    YamlLimitError,
    check_text,
    check_values,
)
from runner.errors import ConfigError
from runner.python.words import words_of
from runner.report.compared_record import load
from runner.study.definition import load_study
from runner.study.snapshot import load as load_snapshot

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "anchors": (LAUGHS, "more than 50,000 values"),
    "merges": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}]}}\n" for i in range(9)),
        "more than 50,000 values",
    ),
    "lists": (f"a: {'[' * 10_000}{']' * 10_000}", "more than 32 levels"),
    "mappings": ("{a: " * 10_000 + "1" + "}" * 10_000, "more than 32 levels"),
    "indented": ("\n".join(f"{' ' * i}a:" for i in range(2000)), "more than 32 levels"),
    "chain": (
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 10_000)),
        "more than 32 levels",
    ),
    "keys": ("\n".join(f"k{i}: {i}" for i in range(100_000)), "more than 10,000 keys"),
    "values": (f"a: [{', '.join(['1'] * 100_000)}]", "more than 50,000 values"),
    "itself": ("a: &a [*a]", "contains itself"),
    "digits": (f"a: {'1' * 5000}", "a number of 5,000 digits"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_bombs_are_refused_immediately(bomb):
    text, why = BOMBS[bomb]
    start = time.process_time()
    with pytest.raises(YamlLimitError, match=why):
        check_text(text)
    assert time.process_time() - start < 1


def test_yaml_within_the_limits_is_read_unchanged(tmp_path):
    file = tmp_path / "fine.yaml"
    file.write_text("a: &a {x: [1, 2], y: 1.5}\nb: *a\nc: {<<: *a, y: null}\n")
    assert (
        load_untrusted(file)
        == yaml.safe_load(file.read_text())
        == {
            "a": {"x": [1, 2], "y": 1.5},
            "b": {"x": [1, 2], "y": 1.5},
            "c": {"x": [1, 2], "y": None},
        }
    )
    check_text("[" * DEEPEST + "]" * DEEPEST)
    check_text("- 1\n" * (MAX_VALUES - 1))
    with pytest.raises(YamlLimitError):
        check_text("- 1\n" * MAX_VALUES)


@pytest.mark.parametrize("bomb", ["anchors", "lists", "keys"])
def test_foreign_files_are_refused_in_one_line(tmp_path, command_line, bomb):
    text, why = BOMBS[bomb]
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "theirs.yaml").write_text(f"# @package _global_\n{text}")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "theirs.yaml").write_text(text)
    record = make_record(tmp_path / "outputs")
    (record / "config.yaml").write_text(text)
    snapshot = tmp_path / "outputs" / "studies" / "theirs" / "snapshot.yaml"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_text(text)

    line = rf"\.yaml, line \d+: {why}"
    code, _, error = command_line("+experiment=theirs", "--config-dir", str(tmp_path))
    assert (code, error.count("\n")) == (2, 0)
    assert why in error
    with conf_folders.restore_folders_on_exit():
        conf_folders.use(str(tmp_path))
        with pytest.raises(ConfigError, match=line):
            load_study("theirs")
    for read in (read_run_config, lambda file: load(file.parent)):
        with pytest.raises(ConfigError, match=line):
            read(record / "config.yaml")
    with pytest.raises(
        ConfigError, match="more than 1,000,000 values" if bomb == "anchors" else line
    ):
        load_snapshot("theirs", tmp_path / "outputs")
    with pytest.warns(runner.RunnerWarning, match=why):
        assert runner.runs(tmp_path / "outputs", settings=["model.width"]).empty


def test_dicts_and_words_are_refused_too():
    deep: dict = {}
    for _ in range(10_000):
        deep = {"a": deep}
    with pytest.raises(ConfigError, match=r"model: more than 32 levels .*; reduce the nesting"):
        words_of({"model": deep})
    with pytest.raises(ConfigError, match=r"inference: more than 32 levels .*; reduce the nesting"):
        runner.runs(inference=deep)
    wide: object = 1
    for _ in range(20):
        wide = dict.fromkeys("abcdefgh", wide)
    with pytest.raises(YamlLimitError, match="more than 50,000"):
        check_values(wide)
    check_values({"a": [1.0] * 1_000_000})  # numbers of a series


def test_word_of_a_command_line_is_refused_too(command_line):
    code, _, error = command_line(f"model={'{a:' * 10_000}1{'}' * 10_000}")
    assert (code, error.count("\n")) == (2, 0)
    assert error.startswith("model: more than 32 levels")
