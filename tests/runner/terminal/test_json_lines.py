"""``--json`` of every command: each line of standard output is an object."""

from __future__ import annotations

import json

import pytest

from runner import run
from runner.catalogue.declarations import read_index
from runner.commands.sub_commands import COMMANDS
from runner.terminal import json_lines
from runner.terminal.printer import out
from runner.terminal.tables import print_fact, print_table

SCRIPTS = {"completion"}  # prints code of a shell


def to_objects(text):
    objects = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(one, dict) for one in objects)
    return objects


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - SCRIPTS))
def test_every_command_has_the_option(name):
    assert "--json" in read_index()[f"command/{name}"].fields


def test_tables_facts_and_lines_become_objects(capsys):
    json_lines.install()
    try:
        print_table("Files", ("data file", "size"), [["a", "1 MB"], ["b", "2 MB"]])
        print_fact("page     ", "index.html")
        out.print("written  a.csv\nwritten  b.csv")
        print("no end of line", end="")
    finally:
        json_lines.uninstall()
    assert to_objects(capsys.readouterr().out) == [
        {"table": "Files", "data_file": "a", "size": "1 MB"},
        {"table": "Files", "data_file": "b", "size": "2 MB"},
        {"page": "index.html"},
        {"message": "written  a.csv"},
        {"message": "written  b.csv"},
        {"message": "no end of line"},
    ]
    assert not json_lines.is_installed()


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("list", {"group", "name", "sentence", "paper"}),
        ("list attacker", {"group", "name", "sentence", "paper"}),
        (
            "show inference/nuts",
            {"role", "name", "sentence", "source", "file", "docstring", "keys"},
        ),
        ("data list sarcos", {"table", "file", "size", "location"}),
        ("arena", {"suite", "measures", "size", "leader", "time"}),
        ("new experiment mine", {"message"}),
        ("clean", {"message"}),
        ("runs", set()),
    ],
)
def test_objects_have_these_keys(command_line, tmp_path, monkeypatch, words, keys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").mkdir()
    code, printed, _ = command_line(*words.split(), "--json")
    assert code == 0
    objects = to_objects(printed)
    assert set(objects[0] if objects else ()) == keys
    assert not json_lines.is_installed()


def test_comparison_has_numbers(command_line, tmp_path):
    keys = {"smoke": True, "tracking": False, "replicates": 2, "output_dir": str(tmp_path)}
    folders = [str(run("cavi_probit", f"steps={n}", **keys).record) for n in (5, 10)]
    code, printed, _ = command_line("compare", *folders, "--output-dir", str(tmp_path), "--json")
    assert code == 0
    objects = to_objects(printed)
    scores = [one for one in objects if one["section"] == "score"]
    assert {type(one["mean"]) for one in scores} == {float}
    assert set(scores[0]) == {"section", "metric", "run", "mean", "se", "n"}
    assert {"run", "config", "score", "difference"} <= {one["section"] for one in objects}


def test_errors_stay_on_standard_error(command_line):
    code, printed, error = command_line("data", "list", "nowhere", "--json")
    assert code == 2
    assert printed == ""
    assert "nowhere" in error
    assert not json_lines.is_installed()
