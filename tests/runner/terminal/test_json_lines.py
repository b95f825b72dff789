"""``--json`` of every command: each line of standard output is an object."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

from runner import CONF
from runner.catalogue.declarations import read_index
from runner.commands.sub_commands import COMMANDS
from runner.conformance.outcomes import CheckResult
from runner.terminal import json_lines
from runner.terminal.printer import out
from runner.terminal.tables import print_fact, print_table

SCRIPTS = {"completion"}  # prints code of a shell
RUN = "+experiment=cavi_probit"
LINES = (
    f"{RUN} smoke=true tracking=false replicates=2 steps=5",
    f"{RUN} smoke=true tracking=false replicates=2 steps=10",
    "resume {0}",
    "list",
    "list study",
    "show inference/nuts",
    "show experiment/mog",
    "show config",
    "data list sarcos",
    "arena",
    "study laplace_modes --status",
    "price laplace_modes --no-probe",
    "runs",
    "compare {0} {1}",
    "clean --dry-run",
    "doctor",
    "predict {0} rows.csv",
    "sbc inference=conjugate_bayes model=linear_regression dataset=linear_simulation dataset.n_train=8 "
    "dataset.n_test=4 dataset.beta=[1.0] steps=1 inference.draws=20 inference.simulations=1 "
    "inference.decisions=[squared] --data-sets 20 --draws 19 --inputs 1",
)


def to_objects(text):
    objects = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(one, dict) for one in objects)
    return objects


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - SCRIPTS))
def test_every_command_has_the_option(name):
    assert "--json" in read_index()[f"command/{name}"].fields


def read_documented_keys():
    """Keys of the objects of each command, from its row of a table."""
    page = (CONF.parent / "docs" / "choose.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", page, re.MULTILINE)
    return {
        name: set(re.findall("`([^`]+)`", keys))
        for names, keys in rows
        for name in re.findall("`([^`]+)`", names)
    }


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


def test_objects_have_the_documented_keys(command_line, tmp_path, monkeypatch):
    documented = read_documented_keys()
    assert documented.keys() - {"+experiment=…"} == COMMANDS.keys()
    assert documented["test"] == {field.name for field in fields(CheckResult)}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x1,x2,x3\n0.5,-1.0,0.0\n")
    records = []
    for line in LINES:
        words = line.format(*records).split()
        _, printed, _ = command_line(*words, "--json")
        objects = to_objects(printed)
        keys = set().union(*objects)
        expected = documented.get(words[0], documented["resume"])
        assert expected <= keys if "record" in keys else keys <= expected | {"message"}, line
        records += [one["record"] for one in objects if words[0] == RUN and "record" in one]
        scores = [one for one in objects if one.get("section") == "score"]
        assert {type(one["mean"]) for one in scores} <= {float}
    assert len(records) == 2


def test_errors_stay_on_standard_error(command_line):
    code, printed, error = command_line("data", "list", "nowhere", "--json")
    assert code == 2
    assert printed == ""
    assert "nowhere" in error
    assert not json_lines.is_installed()
