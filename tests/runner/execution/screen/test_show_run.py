"""Table of results: metrics are side by side if they fit, otherwise below each other."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from runner.execution.screen import progress
from runner.execution.screen import show_run as console
from runner.execution.screen.progress import Live
from runner.terminal import printer, tables

JOB = SimpleNamespace(data="data", choice={"model": "a", "inference": "b"})


@pytest.fixture
def show_output(capsys):
    def show(result, **more) -> list[list[str]]:
        """Words of each line of the table."""
        console.show_result(JOB, result, **more)
        lines = capsys.readouterr().out.splitlines()
        return [
            line.replace("┃", "│").strip("│ ").split("│")
            for line in lines
            if line.startswith(("│", "┃"))
        ]

    return show


def words(line: list[str]) -> list[str]:
    return [cell.strip() for cell in line]


def test_few_metrics_are_shown_side_by_side(show_output):
    result = {
        "auc": [0.5, 0.7],
        "auc/run 1": [0.4, 0.6],
        "auc/run 2": [0.6, 0.8],
        "nlpp": [1.0, 3.0],
    }
    table = show_output(result, printed={"auc": "0.78(0.02)", "auc/run 2": "0.81(0.02)"})
    assert [line[0].strip() for line in table[1:]] == [
        "all",
        "published",
        "run 1",
        "run 2",
        "run 2, published",
    ]
    assert words(table[1]) == ["all", "0.6 ± 0.1", "2 ± 1"]
    assert words(table[5])[:2] == ["run 2, published", "0.81(0.02)"]


def test_many_metrics_are_shown_one_per_line(show_output):
    result = {f"metric{k}": [float(k)] for k in range(12)} | {"metric3/theta[x]": [7.0]}
    table = show_output(result, printed={"metric3": "3.1"})
    assert words(table[0]) == ["all", "published", "theta[x]"]  # brackets in a name are not markup
    assert [line[0].strip() for line in table[1:]] == [f"metric{k}" for k in range(12)]
    assert words(table[4]) == ["metric3", "3", "3.1", "7"]


def test_wide_table_is_printed_in_parts_without_empty_rows(show_output, monkeypatch):
    monkeypatch.setattr(console, "columns_of_terminal", lambda: 50)
    table = show_output(
        {"once": [100.0]}
        | {f"score{i}/part{j}": [10.0 * i + j] for i in range(9) for j in range(9)}
    )
    assert max(len("│".join(line)) for line in table) <= 46  # without the box and its blanks
    cells = [cell for line in table for cell in words(line)]
    assert (cells.count("once"), cells.count("score3"), sum(map(str.isdigit, cells))) == (1, 2, 82)


def test_omitted_parameters_are_counted(show_output, capsys):
    result = {"ess": [1.0]} | {f"ess/theta[{j}]": [float(j)] for j in range(25)}
    console.show_result(JOB, result)
    assert "5 more in run.json: theta[20], theta[21], theta[22], …" in capsys.readouterr().out


def test_long_checks_wrap(capsys, monkeypatch):
    check = "the worst case is no weaker than any member, " * 3
    detail = "0.1 against [0.2], " * 9
    rows = [
        {"check": "first", "passed": True, "detail": "0.5, 0.4"},
        {"check": check, "passed": False, "detail": detail},
    ]
    monkeypatch.setattr(tables, "columns_of_terminal", lambda: 80)
    console.show_checks("checks of the security evaluation", rows)
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == "checks of the security evaluation: 1 of 2 failed"
    starts = [line.split("  ")[0] for line in lines[1:] if not line.startswith(" ")]
    assert starts == ["passed", "FAILED"]
    assert lines[1].split("  ")[1].strip() == "first"
    text = " ".join("".join(f"{line} " for line in lines).split())
    assert "0.5, 0.4" in text
    assert text.endswith(" ".join(f"FAILED {check} {detail}".split()))
    assert max(len(line.rstrip()) for line in lines[1:]) <= 80


def test_skipped_checks_are_neither_passed_nor_failed(capsys):
    rows = [
        {"check": name, "passed": passed, "detail": "d"}
        for name, passed in (("R̂ fits", True), ("two", None))
    ]
    console.show_checks("checks of the run", rows)
    lines = capsys.readouterr().out.strip().splitlines()
    # R̂ is one column wide
    assert lines == [
        "checks of the run: 1 passed, 1 not checked",
        "passed       R̂ fits  d",
        "not checked  two     d",
    ]


def test_long_evaluation_reports_its_part_every_half_minute(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    live = Live(10, 1)
    for seconds, part in ((0, 0), (10, 1), (25, 2), (10, 3)):
        clock[0] += seconds
        live.evaluating("pgd, ε = 0.1", part, 4)
    assert capsys.readouterr().out == "evaluating: pgd, ε = 0.1, 2/4 (35 s)\n"


def test_evaluation_line_has_the_first_score_of_each_posterior(capsys):
    live = Live(10, 1)
    live.show_evaluation(10, 0, {"nlpp/0.5": 1.0, "nlpp/1": 2.0, "rmse/0.5": 3.0})
    assert "step 10/10  nlpp/0.5 1  nlpp/1 2  (" in capsys.readouterr().out
    live.show_evaluation(10, 0, {"nlpp": 1.5, "nlpp/left": 1.0})
    assert "step 10/10  nlpp 1.5  (" in capsys.readouterr().out


def test_terminal_bar_counts_the_parts_of_the_evaluation(monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(printer, "out", Console(force_terminal=True, file=io.StringIO()))
    live = Live(10, 2)
    live.update(10, 0, {"loss": 1.0})
    live.evaluating("pgd, ε = 0.1", 1, 4)
    task = live.progress.tasks[live.task]
    assert (task.description, task.completed, task.total) == ("pgd, ε = 0.1", 1, 4)
    live.restart(1)
    assert (task.description, task.completed, task.total) == ("replicate 2/2", 0, 10)
    live.stop()
