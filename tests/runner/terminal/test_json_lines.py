"""``--json`` of every command: each line of standard output is an object."""

from __future__ import annotations

import re

import pytest
from support.runs.json_output import read_objects

from runner import CONF
from runner.arena.schemas.outputs import describe_output
from runner.catalogue.declarations import read_index
from runner.catalogue.sub_commands import COMMANDS
from runner.system.data import COLUMNS
from runner.terminal import json_lines
from runner.terminal.printer import out
from runner.terminal.tables import print_named, print_table

RUN = "+experiment=cavi_probit"
LINES = (
    f"-m {RUN} smoke=true tracking=false seed=1,2 steps=5 hydra.sweep.dir=sweep",
    "sweep sweep",
    f"{RUN} smoke=true tracking=false replicates=2 steps=5",
    f"{RUN} smoke=true tracking=false replicates=2 steps=10",
    "resume {0}",
    "list gradient",
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
    "export {0} model.zip",
    "new inference mine",
    "sync",
    "completion bash",
    "sbc inference=conjugate_bayes model=linear_regression dataset=linear_simulation dataset.n_train=8 "
    "dataset.n_test=4 dataset.beta=[1.0] steps=1 inference.draws=20 inference.simulations=1 "
    "inference.decisions=[squared] --data-sets 20 --draws 19 --inputs 1",
)


def read_documented_keys():
    """Keys of the objects of each command, from its row of a table."""
    page = (CONF.parent / "docs" / "choose.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \| (.*) \| .*\|$", page, re.MULTILINE)
    return {
        name: set(re.findall("`([^`]+)`", keys))
        for names, keys in rows
        for name in re.findall("`([^`]+)`", names)
    }


def test_tables_facts_and_lines_become_objects(capsys):
    json_lines.install()
    try:
        print_table("Files", COLUMNS, [["a", "1 MB", "here"]])
        print_named("page", "index.html")
        out.print("written  a.csv\nwritten  b.csv")
        print("no end of line", end="")
    finally:
        json_lines.uninstall()
    assert read_objects("data", capsys.readouterr().out) == [
        {"table": "Files", "file": "a", "size": "1 MB", "location": "here"},
        {"page": "index.html"},
        {"message": "written  a.csv"},
        {"message": "written  b.csv"},
        {"message": "no end of line"},
    ]
    assert not json_lines.is_installed()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_option_and_documented_keys_exist(name):
    assert "--json" in read_index()[f"command/{name}"].fields
    schemas = str(describe_output(name))
    assert {key for key in read_documented_keys()[name] if f"'{key}'" not in schemas} == set()


def test_output_fits_its_schema(command_line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x1,x2,x3\n0.5,-1.0,0.0\n")
    records = []
    for line in LINES:
        words = line.format(*records).split()
        code, printed, error = command_line(*words, "--json")
        assert code < 2, error  # 1: a run has no price
        objects = read_objects(words[0], printed)
        records += [one["record"] for one in objects if words[0] == RUN and "record" in one]
    assert len(records) == 2


def test_errors_stay_on_standard_error(command_line):
    code, printed, error = command_line("data", "list", "nowhere", "--json")
    assert code == 2
    assert printed == ""
    assert "nowhere" in error
    assert not json_lines.is_installed()
