"""Costs of results pages, and the order in which a nightly job runs them again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from scripts import results_all
from scripts.prose.costs import make_costs, page_cost
from scripts.results_all import run_all


def test_page_costs_sum_the_hours_of_its_reports():
    cost = page_cost(
        "a",
        [
            ("runs", "36 done, 2 failed; 0.5 h of computing"),
            ("machine", "AMD EPYC"),
            ("of earlier scores: runs", "4 done; 1.25 h of computing"),
            ("of earlier scores: machine", "AMD EPYC"),
        ],
    )
    assert (cost.runs, cost.hours, cost.cpu_hours, cost.machine) == (40, 1.75, None, "AMD EPYC")
    measured = page_cost("b", [("runs", "3 done; 2.0 h of computing, 1.5 CPU hours")])
    assert (measured.hours, measured.cpu_hours, measured.machine) == (2.0, 1.5, "–")
    assert page_cost("c", []).hours is None


def test_page_is_sorted_by_cost_and_has_a_sum(tmp_path):
    for name, runs in (
        ("cheap", "1 done; 0.5 h of computing"),
        ("dear", "2 done; 3.0 h of computing"),
    ):
        (tmp_path / f"{name}_replicates.csv").write_text("")
        facts = {"provenance": [["runs", runs], ["machine", "Z80"]]}
        (tmp_path / f"{name}_origin.json").write_text(json.dumps(facts))
    (tmp_path / "dear.md").write_text("# dear\n")
    rows = [line for line in make_costs(tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| [dear](dear.md) | 2 | 3.0 | – | Z80 |",
        "| cheap | 1 | 0.5 | – | Z80 |",
        "| all | 3 | 3.5 | | |",
    ]


def test_important_studies_precede_cheap_ones(monkeypatch, tmp_path):
    hours = {"unknown": None, "dear": 9.0, "cheap": 0.1, "important": 99.0}
    costs = [SimpleNamespace(name=name, hours=each) for name, each in hours.items()]
    monkeypatch.setattr(results_all, "read_costs", lambda folder: costs)
    monkeypatch.setattr(results_all, "list_scores", lambda folder: hours)
    studies = {name: SimpleNamespace(importance=1.0 + (name == "important")) for name in hours}
    monkeypatch.setattr(results_all, "load_study", studies.get)
    assert list(results_all.rank_studies(tmp_path)) == ["important", "cheap", "dear", "unknown"]


@pytest.mark.parametrize(
    ("budget", "codes", "ran", "remaining"),
    [
        (7200.0, [0, 1, 0], "abc", ""),  # a study with failures does not stop the others
        (7200.0, [0, 130, 0], "ab", "c"),  # Ctrl-C is
        (3700.0, [0, 0, 0], "ab", "c"),  # an hour each by the test's clock
    ],
)
def test_studies_run_until_the_budget_is_spent(monkeypatch, budget, codes, ran, remaining):
    now = [0.0]
    monkeypatch.setattr(results_all.time, "monotonic", lambda: now[0])
    pages = []

    def start(words: list[str]) -> int:
        pages.append(words)
        now[0] += 1850.0
        return codes[len(pages) - 1]

    n = run_all("abc", budget, ["--jobs", "2"], start)
    assert ("abc"[:n], "abc"[n:]) == (ran, remaining)
    assert pages[0] == ["study", "a", "--budget", f"{budget:.0f}s", "--jobs", "2"]
    if len(pages) > 1:
        assert pages[1][3] == f"{budget - 1850:.0f}s"


def test_invalid_budget_is_refused_in_one_line(capsys):
    with pytest.raises(SystemExit) as end:
        results_all.main(["--budget", "tonight"])
    assert end.value.code == 2
    assert "such as 30m, 8h or 2d" in capsys.readouterr().err
