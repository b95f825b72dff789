"""Untrusted text on terminals, in pages and in tables: no markup, emoji or control characters."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.table import Table

from runner.execution.screen import show_run as console
from runner.report.latex.text import latex
from runner.terminal import printer
from runner.terminal.csv_cells import escape_cell
from runner.terminal.plain import plain, plain_value
from runner.terminal.tables import print_table

# ANSI, OSC
RED = "\x1b[31mred\x1b[0m"
TITLE = "\x1b]0;owned\x07"


def render(renderable: object, **keys: object) -> str:
    console = printer.PlainConsole(width=200)
    console.file = io.StringIO()
    console.print(renderable, **keys)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RED, "␛[31mred␛[0m"),
        (TITLE, "␛]0;owned␇"),
        ("a\x9b31m\x7f", "a\ufffd31m␡"),  # CSI in one byte, delete
        ("\u202egnp.exe", "\ufffdgnp.exe"),  # right to left
        ("a\tb\nc ε", "a\tb\nc ε"),
        ("a\rb", "a␍b"),
    ],
)
def test_control_characters_become_pictures(text, expected):
    assert plain(text) == expected
    assert plain_value(text) == expected
    assert latex(text).count("\x1b") == 0
    assert escape_cell(text) == expected


def test_piped_cells_stay_in_their_column_and_line(capsys):
    print_table("", ["name", "value"], [["a\tb\nc", RED]])
    assert capsys.readouterr().out == "a␉b␊c\t␛[31mred␛[0m\n"


def test_console_prints_words_verbatim():
    assert (
        render("games:zero: [red]x[/bold] :fire: \x1b[31m")
        == "games:zero: [red]x[/bold] :fire: ␛[31m\n"
    )
    table = Table("[b]x:smile:", title="[/]")
    table.add_row("\x1b]8;;http://x\x07link")
    words = render(table)
    assert "[b]x:smile:" in words
    assert "[/]" in words
    assert "␛]8;;http://x␇link" in words
    assert "\x1b" not in words


def make_job(config, **changed):
    run = {"seed": 0, "replicates": 1, "steps": None, "device": "cpu", "dtype": "float32"}
    settings = {"experiment": "e", "description": "", "threads": 1, "smoke": True} | run | changed
    return SimpleNamespace(
        settings=SimpleNamespace(**settings),
        choice={"model": None, "inference": None} | {role: config[role]["name"] for role in config},
        signature="abcdefabcdef",
        notes=["[/note] :fire:"],
        config=config,
        data="d[red]:fire:",
    )


def test_header_shows_changed_values_first_as_typed(monkeypatch, capsys):
    monkeypatch.setattr(printer.out, "width", 200)
    keys = {"name": "map", "lr": 0.5, "a": [50, None], "clip": None, "names": ["a b", "c"]}
    console.show_composition(
        make_job({"inference": {**keys, "dropout": "ignored", "b": {"on": True}}})
    )
    lines = capsys.readouterr().out.splitlines()
    typed = "lr=0.5  a=[50,null]  clip=null  names=['a b',c]  b={on:true}  dropout=ignored"
    assert lines[1].endswith(typed)
    assert "steps=null" in lines[2]
    # the tree is folded at 100 columns
    assert lines[3].endswith("smoke=true")


def test_run_output_prints_user_words_verbatim(monkeypatch, capsys):
    monkeypatch.setattr(printer.out, "width", 200)
    config = {"dataset": {"name": "csv", "path": "a:fire:[b].csv", "title": TITLE}}
    job = make_job(config, experiment="e[/x]", description=f"[bold]d :fire: {RED}")
    console.show_composition(job)
    console.show_facts({"data": "x:fire:[/y]"})
    console.show_result(job, {"rmse": [1.0], "rmse/[/a]:fire:": [1.0]})
    console.show_checks("checks [/]", [{"passed": True, "check": "c:fire:", "detail": "[/d]"}])
    printer.announce("t:fire:", "m [/z] :fire:")
    printer.complain("e:fire: [/q]\x1b[2J")
    words = capsys.readouterr()
    for text in (
        "e[/x]",
        "[bold]d :fire: ␛[31mred",
        "a:fire:[b].csv",
        "␛]0;owned",
        "[/note] :fire:",
        "x:fire:[/y]",
        "d[red]:fire:",
        "[/a]:fire:",
        "warning  t:fire:: m [/z] :fire:\n",
        "checks [/]",
        "c:fire:",
        "[/d]",
    ):
        assert text in words.out
    assert words.err == "e:fire: [/q]␛[2J\n"
    assert "\x1b" not in words.out
