"""Prices by hand counts: lines through miniatures, rows within a budget, the printed list."""

from __future__ import annotations

import time

import pytest
from support.runs.made_studies import CONFIG, made_definition, made_run

from runner.errors import ConfigError
from runner.record.usage import PHASES
from runner.study.pricing.budget import Deadline, choose_rows, parse_budget
from runner.study.pricing.miniature import count_draws, shrink_steps
from runner.study.pricing.price import Price, fit_line, price_from_probe
from runner.study.pricing.price_list import PriceList, list_rows, to_cells
from runner.study.pricing.probe import Probe, Sample, _next_size


def sample(steps: int, replicates: int = 1, **seconds: float) -> Sample:
    """A miniature with these CPU seconds by phase, one second of other work, one evaluation."""
    phases = dict.fromkeys(PHASES, 0.0) | seconds
    usage = phases | {"cpu_seconds": sum(phases.values()) + 1.0, "peak_mib": 400.0}
    sizes = {"disk": 500_000, "pictures": 300_000, "repeated": 0, "checkpoint": 100_000, "kept": 2}
    lines = {"training_line": 100.0, "evaluation_line": 400.0}
    costs = {"gradients": float(steps)}
    return Sample(
        steps, replicates, usage, **sizes, **lines, costs=costs, figures=True, evaluations=1
    )


def price(*samples: Sample, config: dict = CONFIG, total: int = 1000, **facts) -> Price:
    return price_from_probe(Probe(total=total, start=2.0, samples=list(samples), **facts), config)


def test_price_is_the_start_and_a_line_through_warm_miniatures():
    # a step 0.01 s, set-up 0.5, an evaluation 0.2, the final one 2, a save 0.1, figures 0.3;
    # imports make the first evaluation 0.7 and the first figures 1.1 dearer
    warm = {"set_up": 0.5, "evaluations": 0.2, "final": 2.0, "saving": 0.1, "files": 0.3}
    first = sample(8, **warm | {"training": 0.08, "evaluations": 0.9, "files": 1.4})
    samples = (first, sample(100, **warm, training=1.0), sample(400, **warm, training=4.0))
    one_pass = 0.5 + 10.0 + 3 * 0.2 + 2 * 0.1 + 2.0
    by_hand = 2.0 + 1.0 + 0.7 + 1.1 + 0.3 + one_pass
    three = CONFIG | {"replicates": 3}
    assert price(*samples).cpu == pytest.approx(by_hand)
    assert price(*samples, config=three).cpu == pytest.approx(by_hand + 2 * one_pass)
    assert price(*samples, config=three, vectorised=True).cpu == pytest.approx(by_hand)
    # lines: 100 of training and the first step's, three evaluations and the last one
    assert price(*samples).megabytes == pytest.approx(1.0 + (101 * 100 + 4 * 400) / 1e6)


CHAIN = CONFIG | {"inference": {"name": "sgld", "burn_in": 200, "thinning": 10}, "eval_every": None}
ALONE = CONFIG | {"eval_every": None}


@pytest.mark.parametrize(("small", "large", "config", "facts", "cpu"), [
    # 8 and 32 draws of 80: an evaluation of more draws costs more
    (sample(100, training=1.0, final=0.8), sample(400, training=4.0, final=3.2), CHAIN, {}, 10.0 + 8.0),
    (sample(100, training=1.0, final=3.0), sample(400, training=4.0, final=3.2), CHAIN, {}, 10.0 + 3.2),  # noise
    # half of the steps spend the budget
    (sample(100, training=1.0), sample(400, training=4.0), ALONE | {"budget": {"gradients": 500, "steps": None}}, {}, 5.0),
    (sample(1, 20, training=2.0), sample(1, 40, training=4.0), ALONE | {"steps": 1, "replicates": 100},
     {"total": 1, "axis": "replicates", "vectorised": True}, 10.0),
])  # fmt: skip
def test_cpu_seconds_of_a_whole_run(small, large, config, facts, cpu):
    first = sample(8) if small.steps > 1 else sample(1, 12)
    assert price(first, small, large, config=config, **facts).cpu == pytest.approx(2.0 + 1.0 + cpu)


def test_miniatures_shrink_all_counts_of_steps():
    keys = {"burn_in": 500, "thinning": 50, "undefended_steps": 250, "at": [0, 10, 20, 1000]}
    inference = {"name": "x", "lr": 0.1}
    small = shrink_steps(CONFIG | {"inference": inference | keys}, 100, 1000)
    assert (small["steps"], small["eval_every"], small["budget"]) == (100, 50, None)
    # at least four draws
    shrunk = {"burn_in": 50, "thinning": 12, "undefended_steps": 25, "at": [0, 1, 2, 100]}
    assert small["inference"] == inference | shrunk
    assert shrink_steps(CONFIG | {"eval_every": 1000}, 100, 1000)["eval_every"] is None
    for steps, draws in ((100, 8), (400, 32)):  # burn-ins of 20 and 80, thinned by 10
        assert count_draws(shrink_steps(CHAIN, steps, 1000)["inference"], steps) == draws
    assert count_draws(CHAIN["inference"], 1000) == 80


SMALL, WHOLE, DEAR = sample(8, training=0.1), sample(20, training=0.2), sample(20, final=50.0)


@pytest.mark.parametrize(
    ("done", "again", "size"),
    [
        ([SMALL], True, 20),
        ([SMALL, WHOLE], True, 20),  # it finds memory that the first one had to ask for
        ([SMALL, WHOLE, WHOLE], True, 0),
        ([SMALL, WHOLE], False, 0),
        ([SMALL, DEAR], True, 0),
    ],
)
def test_runs_of_several_passes_get_a_second_whole_miniature(done, again, size):
    assert _next_size(done, 20, "steps", 5.0, again) == size


def test_a_step_whose_cost_changes_has_a_range():
    samples = [sample(8), sample(100, training=1.0), sample(400, training=4.0)]
    assert price(*samples).spread < 1.5
    for trees, one in zip((8.0, 800.0, 1400.0), samples, strict=True):
        one.costs["gradients"] = trees
    changing = price(*samples)
    assert changing.spread > 2.0
    assert "changes" in changing.note


def test_price_of_a_probe_that_did_not_end_well():
    assert price(error="inference.lr: too large").error == "inference.lr: too large"
    stopped = price(error="no word", late="took more than 60 s")
    late = "its probe took more than 60 s; a larger --probe-seconds gives it longer"
    assert stopped.error == late
    rough = price(sample(8, training=8.0), late="took more than 30 s")
    assert rough.cpu == pytest.approx(2.0 + 1.0 + 1000.0)
    assert rough.spread >= 3.0
    assert "30 s" in rough.note


@pytest.mark.parametrize(
    ("points", "value"),
    [
        ([(0.0, 5.0)], 5.0),
        ([(1.0, 2.0), (3.0, 6.0)], 20.0),
        ([(1.0, 2.0), (3.0, 2.1)], 2.1),  # noise
        ([(1.0, 2.0), (3.0, 1.0)], 1.0),  # no cost falls
        ([(2.0, 2.0), (2.0, 6.0)], 6.0),
    ],
)
def test_lines(points, value):
    assert fit_line(points, growth=0.2)(10.0) == pytest.approx(value)


STUDY = made_definition(a=1.0, b=3.0, c=2.0, d=1.0)


@pytest.mark.parametrize(("seconds", "jobs", "budget", "taken", "left_out"), [
    ("15 10 20 12", 1, 100.0, "bcad", {}),
    ("15 10 20 12", 1, 45.0, "bca", {"d": "about 12 s"}),  # ties in the order of the study
    ("25 10 25 12", 1, 30.0, "bd", {"c": "about 25 s", "a": "about 25 s"}),  # a cheaper row fits
    ("15 10 20 12", 1, 9.0, "", {"b": "about 10 s", "c": "about 20 s", "a": "about 15 s", "d": "about 12 s"}),
    ("10 10 10 0", 1, 20.0, "bc", {"a": "about 10 s", "d": "no price: bad"}),
    ("10 10 10 0", 2, 20.0, "bca", {"d": "no price: bad"}),
])  # fmt: skip
def test_budget_takes_important_rows_first(seconds, jobs, budget, taken, left_out):
    values = dict(zip("abcd", map(float, seconds.split()), strict=True))
    runs = [made_run(row, row) for row in values]
    prices = {row: Price(cpu=s) if s else Price(error="bad") for row, s in values.items()}
    choice = choose_rows(STUDY, runs, PriceList(prices), jobs, budget)
    assert "".join(run.row for run in choice.runs) == taken
    assert list(choice.left_out.items()) == list(left_out.items())


def test_runs_that_would_end_after_the_budget_are_not_started():
    a, b = (made_run(row, row) for row in "ab")
    deadline = Deadline(time.monotonic() + 100.0, {"a": 50.0, "b": 150.0}, "again")
    waiting = [a, b]
    deadline.drop_late(waiting)
    assert (waiting, deadline.dropped) == ([a], [b])
    deadline.note_end(a, 25.0)
    assert deadline.pace == 1.0, "sooner than expected"
    deadline.note_end(a, 175.0)  # 200 s in place of 100 s
    deadline.drop_late(waiting)
    assert not waiting, "a run of 50 s takes 100 s"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800.0), ("8h", 28800.0), ("2d", 172800.0), ("1.5H", 5400.0), ("90 s", 90.0), ("5min", 300.0)],
)  # fmt: skip
def test_budgets_in_words(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "8", "h", "-2h", "0h", "8 weeks", "1e3h", "8h30m"])
def test_a_wrong_budget_is_one_message(text):
    message = rf"^--budget {text}: must be a number above 0 with a unit[^\n]*$"
    with pytest.raises(ConfigError, match=message):
        parse_budget(text)


def test_rows_and_their_sum():
    runs = [made_run(name, name[0]) for name in ("a1", "a2", "b1", "c1")]
    listed = PriceList({
        "a1": Price(cpu=100.0, mib=300.0, megabytes=1.0, source="probe", spread=1.3),
        "a2": Price(cpu=200.0, mib=500.0, megabytes=2.0, source="probe", spread=1.3),
        "b1": Price(cpu=60.0, source="record", spread=2.0),
        "c1": Price(error="model.width: no"),
    })  # fmt: skip
    a, b, c, total = list_rows(runs, listed, jobs=2)
    assert (a.price.cpu, a.wall, a.price.mib, a.price.megabytes) == (300.0, 200.0, 500.0, 3.0)
    assert to_cells(b)[2] == "60 s (30 s to 2 min)"
    assert to_cells(c)[-1] == "error: model.width: no"
    assert (total.price.cpu, total.wall, total.without) == (360.0, 200.0, 1)
    low = 360**2 / (300 * 1.3 + 60 * 2)
    assert total.to_json()["cpu_seconds_low"] == pytest.approx(low, abs=0.1)
