"""Prices compared with hand calculations: lines fitted to short runs, rows within a budget, and
the printed list.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.runs.made_studies import CONFIG, make_definition, make_run

from runner.errors import ConfigError
from runner.record.usage import PHASES
from runner.study.pricing.budget import TimeBudget, choose_rows, parse_budget, sort_by_importance
from runner.study.pricing.price import MeasuredRun, Price, count, extrapolate, price_run
from runner.study.pricing.price_list import list_rows, to_cells
from runner.study.pricing.probe import next_size, shrink_steps


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    """Records of 1 MB, including 0.3 MB that do not depend on replicates."""
    monkeypatch.setattr(MeasuredRun, "bytes_once", 0.3e6)
    monkeypatch.setattr(MeasuredRun, "bytes_each", 0.7e6)


def sample(steps: int, config: dict = CONFIG, vectorised: bool = False, **seconds: float):
    """A miniature with these CPU seconds by phase, and one second of other work."""
    phases = dict.fromkeys(PHASES, 0.0) | seconds
    total = sum(phases.values()) + 1.0
    usage = phases | {"cpu_seconds": total, "peak_mib": 400.0, "passes": 1}
    small = {"steps": steps, "eval_every": max(1, steps // 2), "budget": None}
    facts = {"usage": usage, "vectorised": vectorised, "finished": {"0": {}}}
    return MeasuredRun(Path("none"), config | small, facts)


def test_price_is_the_start_plus_a_line_through_miniatures():
    # step 0.01 s, set-up 0.5, evaluation 0.2, final evaluation 2, save 0.1, figures 0.3;
    # imports add 0.7 to the first evaluation and 1.1 to the first figures
    warm = {"set_up": 0.5, "evaluations": 0.2, "final": 2.0, "saving": 0.1, "files": 0.3}
    cold = warm | {"training": 0.08, "evaluations": 0.9, "files": 1.4, "start": 2.0}
    one_pass = 0.5 + 10.0 + 3 * 0.2 + 2 * 0.1 + 2.0
    by_hand = 2.0 + 1.0 + 0.7 + 1.4 + one_pass
    for vectorised, replicates, passes in ((False, 1, 1), (False, 3, 3), (True, 3, 1)):
        config = CONFIG | {"replicates": replicates}
        runs = [
            sample(steps, config, vectorised, **seconds)
            for steps, seconds in (
                (8, cold),
                (100, warm | {"training": 1.0}),
                (400, warm | {"training": 4.0}),
            )
        ]
        whole = price_run(config, runs)
        assert whole.cpu == pytest.approx(by_hand + (passes - 1) * one_pass)
        assert whole.megabytes == pytest.approx(0.3 + passes * 0.7)
        assert whole.mib == 400.0


ALONE = CONFIG | {"eval_every": None}
WIDE = ALONE | {"steps": 1}


def wide(replicates: int, **seconds: float):
    return sample(1, WIDE | {"replicates": replicates}, True, **seconds)


@pytest.mark.parametrize(
    ("runs", "config", "cpu"),
    [
        # an evaluation of more draws costs more
        ((sample(8), sample(100, final=0.8), sample(400, final=3.2)), ALONE, 8.0),
        ((sample(8), sample(100, final=3.0), sample(400, final=3.2)), ALONE, 3.2),  # noise
        ((sample(8), sample(100, training=1.0), sample(400, training=4.0)), ALONE, 10.0),
        (
            (wide(12), wide(20, training=2.0), wide(40, training=4.0)),
            WIDE | {"replicates": 100},
            10.0,
        ),
        # compilation in the first of two
        ((sample(8, training=3.0), sample(100, training=1.0)), ALONE, 2.92 + 10.0),
        ((sample(8, training=8.0),), ALONE, 1000.0),
    ],
)
def test_cpu_seconds_of_a_run_are_extrapolated(runs, config, cpu):
    assert price_run(config, runs).cpu == pytest.approx(1.0 + cpu)


def test_cost_spaced_evaluations_are_24_with_the_last():
    assert count("evaluations", CONFIG | {"eval_every": "geometric"}) == 23


def test_miniatures_shrink_all_counts_of_steps():
    keys = {"burn_in": 500, "thinning": 50, "undefended_steps": 250, "at": [0, 10, 20, 1000]}
    inference = {"name": "x", "lr": 0.1}
    small = shrink_steps(CONFIG | {"inference": inference | keys}, 100)
    assert (small["steps"], small["eval_every"], small["budget"]) == (100, 50, None)
    # at least four draws
    shrunk = {"burn_in": 50, "thinning": 12, "undefended_steps": 25, "at": [0, 1, 2, 100]}
    assert small["inference"] == inference | shrunk
    assert shrink_steps(CONFIG | {"eval_every": 1000}, 100)["eval_every"] is None
    assert shrink_steps(CONFIG | {"eval_every": "geometric"}, 100)["eval_every"] == 50


@pytest.mark.parametrize(
    ("sizes", "whole", "training", "rest", "size"),
    [
        ([8], 20, 0.1, 1.0, 20),  # shorter than the probe
        ([8], 10**6, 0.008, 1.0, 8 * 32),
        ([8], 10**6, 0.8, 1.0, 16),  # half a second of training, at least twice the size
        ([8, 256], 10**6, 0.256, 1.0, 2000),
        ([8, 256], 10**6, 0.256, 6.0, 0),  # its evaluation takes longer than the probe
        ([8, 16], 10**6, 2.1, 1.0, 0),
        ([8, 16], 20, 2.1, 1.0, 20),
        ([8, 20], 20, 0.1, 1.0, 0),
        ([8, 16, 32], 10**6, 0.1, 1.0, 0),
    ],
)
def test_miniatures_grow_to_a_share_of_the_seconds(sizes, whole, training, rest, size):
    usage = {"cpu_seconds": 2.0 + training + rest, "start": 2.0, "training": training}
    assert next_size(sizes, whole, usage, 5.0) == size


@pytest.mark.parametrize(
    ("points", "value"),
    [
        ([(0.0, 5.0)], 5.0),
        ([(1.0, 2.0), (3.0, 6.0)], 20.0),
        ([(1.0, 2.0), (3.0, 2.1)], 2.1),  # noise
        ([(1.0, 2.0), (3.0, 1.0)], 1.0),  # costs do not decrease
        ([(2.0, 2.0), (2.0, 6.0)], 6.0),
    ],
)
def test_lines_are_fitted_and_evaluated(points, value):
    assert extrapolate(points, 10.0, growth=0.2) == pytest.approx(value)


STUDY = make_definition(a=1.0, b=3.0, c=2.0, d=1.0)


@pytest.mark.parametrize(
    ("seconds", "jobs", "budget", "chosen", "left_out"),
    [
        ("15 10 20 12", 1, 100.0, "bcad", {}),
        ("15 10 20 12", 1, 45.0, "bca", {"d": "about 12 s"}),  # ties in the order of the study
        # a cheaper row fits
        ("25 10 25 12", 1, 30.0, "bd", {"c": "about 25 s", "a": "about 25 s"}),
        (
            "15 10 20 12",
            1,
            9.0,
            "",
            {"b": "about 10 s", "c": "about 20 s", "a": "about 15 s", "d": "about 12 s"},
        ),
        ("10 10 10 0", 1, 20.0, "bc", {"a": "about 10 s", "d": "no price: bad"}),
        ("10 10 10 0", 2, 20.0, "bca", {"d": "no price: bad"}),
    ],
)
def test_budget_takes_important_rows_first(seconds, jobs, budget, chosen, left_out):
    values = dict(zip("abcd", map(float, seconds.split()), strict=True))
    runs = [make_run(row, row) for row in values]
    prices = {row: Price(cpu=s) if s else Price(error="bad") for row, s in values.items()}
    choice = choose_rows(sort_by_importance(STUDY, runs), prices, jobs, budget)
    assert "".join(run.row for run in choice.runs) == chosen
    assert list(choice.left_out.items()) == list(left_out.items())


def test_runs_that_would_exceed_the_budget_are_not_started():
    a, b = (make_run(row, row) for row in "ab")
    budget = TimeBudget(ends=time.monotonic() + 100.0, expected={"a": 50.0, "b": 150.0})
    waiting = [a, b]
    budget.drop_late(waiting)
    assert (waiting, budget.dropped) == ([a], [b])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800.0),
        ("8h", 28800.0),
        ("2d", 172800.0),
        ("1.5H", 5400.0),
        ("90 s", 90.0),
        ("5min", 300.0),
    ],
)
def test_budgets_are_parsed(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "8", "h", "-2h", "0h", "8 weeks", "1e3h", "8h30m"])
def test_invalid_budget_is_one_message(text):
    message = rf"^--budget {text}: must be a number above 0 with a unit[^\n]*$"
    with pytest.raises(ConfigError, match=message):
        parse_budget(text)


def test_rows_and_their_sum_are_printed():
    runs = [make_run(name, name[0]) for name in ("a1", "a2", "b1", "c1")]
    prices = {
        "a1": Price(cpu=100.0, mib=300.0, megabytes=1.0, source="probe", spread=1.3),
        "a2": Price(cpu=200.0, mib=500.0, megabytes=2.0, source="probe", spread=1.3),
        "b1": Price(cpu=60.0, source="record", spread=2.0),
        "c1": Price(error="model.width: no"),
    }
    a, b, c, total = list_rows(runs, prices, jobs=2)
    keys = ("cpu_seconds", "wall_seconds", "peak_mib", "disk_mb")
    assert [a[key] for key in keys] == [300.0, 200.0, 500, 3.0]
    assert to_cells(a)[2:4] == ("5 min", "3 min")
    assert to_cells(b)[2] == "60 s (30 s to 2 min)"
    assert to_cells(c)[-1] == "error: model.width: no"
    assert [total[key] for key in (*keys[:2], "unpriced")] == [360.0, 200.0, 1]
    assert total["cpu_seconds_low"] == pytest.approx(300 / 1.3 + 60 / 2, abs=0.1)
