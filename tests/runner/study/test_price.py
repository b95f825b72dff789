"""Prices by hand counts: lines through miniatures, records scaled by replicates, rows in a budget."""

from __future__ import annotations

import json

import pytest
import yaml

from runner.errors import ConfigError
from runner.record import usage
from runner.record.usage import PHASES, UsageMeter, cpu_now, peak_mib
from runner.study.definition import StudyDefinition
from runner.study.pricing.budget import Deadline, choose_rows, parse_budget
from runner.study.pricing.miniature import count_draws, shrink_steps
from runner.study.pricing.price import Price, Probe, fit_line, price_from_probe
from runner.study.pricing.price_list import PriceList, list_rows, to_cells
from runner.study.pricing.price_records import RecordedPrices, cost_key, price_from_record
from runner.study.pricing.probe import Sample, _next_size
from runner.study.pricing.probes import read_answer
from runner.study.snapshot import FrozenRun, Snapshot

CONFIG = {
    "dataset": {"name": "digits"},
    "model": {"name": "mlp"},
    "inference": {"name": "map"},
    "steps": 1000,
    "replicates": 1,
    "eval_every": 250,
    "checkpoint_every": 500,
    "record_every": 10,
    "budget": None,
    "smoke": False,
}


def sample(steps: int, replicates: int = 1, **seconds: float) -> Sample:
    """A miniature with these CPU seconds by phase, one second of other work, one evaluation."""
    phases = dict.fromkeys(PHASES, 0.0) | seconds
    usage = phases | {"cpu_seconds": sum(phases.values()) + 1.0, "peak_mib": 400.0}
    return Sample(
        steps=steps,
        replicates=replicates,
        usage=usage,
        disk=500_000,
        pictures=300_000,
        repeated=0,
        checkpoint=100_000,
        kept=2,
        training_line=100.0,
        evaluation_line=400.0,
        costs={"gradients": float(steps)},
        figures=True,
        evaluations=1,
    )


def probe(*samples: Sample, total: int = 1000, **facts: object) -> Probe:
    return Probe(total=total, start=2.0, samples=list(samples), **facts)  # type: ignore[arg-type]


# ---- the arithmetic
# --------------------------------------------------------------------------------------------------
def test_a_price_is_what_happens_once_and_a_line_through_warm_miniatures():
    # a step 0.01 s, set-up 0.5, an evaluation 0.2, the final one 2, a save 0.1, figures 0.3;
    # imports make the first evaluation 0.7 and the first figures 1.1 dearer
    warm = {"set_up": 0.5, "evaluations": 0.2, "final": 2.0, "saving": 0.1, "files": 0.3}
    first = sample(8, **warm | {"training": 0.08, "evaluations": 0.9, "files": 1.4})
    samples = (first, sample(100, **warm, training=1.0), sample(400, **warm, training=4.0))
    by_hand = 2.0 + 1.0 + 0.7 + 1.1 + 0.3 + (0.5 + 10.0 + 3 * 0.2 + 2 * 0.1 + 2.0)
    price = price_from_probe(probe(*samples), CONFIG)
    assert price.cpu == pytest.approx(by_hand)
    three = price_from_probe(probe(*samples), CONFIG | {"replicates": 3})
    assert three.cpu == pytest.approx(by_hand + 2 * (0.5 + 10.0 + 3 * 0.2 + 2 * 0.1 + 2.0))
    together = price_from_probe(probe(*samples, vectorised=True), CONFIG | {"replicates": 3})
    assert together.cpu == pytest.approx(by_hand), "all replicates are one pass"
    # lines: 100 of training and the first step's, three evaluations and the last one
    assert price.megabytes == pytest.approx(1.0 + (101 * 100 + 4 * 400) / 1e6)


def test_an_evaluation_of_more_draws_costs_more_and_noise_does_not():
    config = CONFIG | {
        "inference": {"name": "sgld", "burn_in": 200, "thinning": 10},
        "eval_every": None,
    }
    # 100 and 400 of 1000 steps: burn-ins of 20 and 80, thinned by 10: 8 and 32 draws of 80
    small = [shrink_steps(config, n, 1000)["inference"] for n in (100, 400)]
    assert [count_draws(k, n) for k, n in zip(small, (100, 400), strict=True)] == [8, 32]
    assert count_draws(config["inference"], 1000) == 80
    grows = [sample(100, training=1.0, final=0.8), sample(400, training=4.0, final=3.2)]
    priced = price_from_probe(probe(sample(8), *grows), config)
    assert priced.cpu == pytest.approx(2.0 + 1.0 + 10.0 + 8.0)
    flat = [sample(100, training=1.0, final=3.0), sample(400, training=4.0, final=3.2)]
    assert price_from_probe(probe(sample(8), *flat), config).cpu == pytest.approx(2 + 1 + 10 + 3.2)


def test_replicates_that_are_shortened_in_place_of_steps():
    config = CONFIG | {"steps": 1, "replicates": 100, "eval_every": None}
    samples = [sample(1, 12), sample(1, 20, training=2.0), sample(1, 40, training=4.0)]
    priced = price_from_probe(probe(*samples, total=1, axis="replicates", vectorised=True), config)
    assert priced.cpu == pytest.approx(2.0 + 1.0 + 10.0)


def test_a_second_whole_miniature_is_for_runs_with_several_passes():
    """The first one touches new memory; of passes it is the price of one."""
    small, whole = sample(8, training=0.1), sample(20, training=0.2)

    def next_size(*done: Sample, again: bool) -> int:
        return _next_size(list(done), 20, "steps", 5.0, again)

    assert next_size(small, again=True) == 20
    assert next_size(small, whole, again=True) == 20
    assert next_size(small, whole, whole, again=True) == 0
    assert next_size(small, whole, again=False) == 0
    assert next_size(small, sample(20, final=50.0), again=True) == 0, "too dear"


def test_a_budget_of_costs_ends_a_run_early():
    config = CONFIG | {"budget": {"gradients": 500, "cpu_seconds": None}, "eval_every": None}
    samples = (sample(8), sample(100, training=1.0), sample(400, training=4.0))
    assert price_from_probe(probe(*samples), config).cpu == pytest.approx(2.0 + 1.0 + 5.0)


def test_a_step_whose_cost_changes_has_a_range():
    steady = probe(sample(8), sample(100, training=1.0), sample(400, training=4.0))
    assert price_from_probe(steady, CONFIG).spread < 1.5
    for trees, one in zip((8.0, 800.0, 1400.0), steady.samples, strict=True):
        one.costs["gradients"] = trees
    priced = price_from_probe(steady, CONFIG)
    assert priced.spread > 2.0
    assert "changes" in priced.note


def test_a_probe_without_an_answer_is_an_error_and_a_late_one_a_rough_price():
    assert price_from_probe(Probe(error="inference.lr: too large"), CONFIG).error == (
        "inference.lr: too large"
    )
    stopped = price_from_probe(Probe(error="no word", late="took more than 60 s"), CONFIG)
    assert stopped.error == (
        "its probe took more than 60 s; a larger --probe-seconds gives it longer"
    )
    late = Probe()
    ready = {"start": 1.0, "mib": 300.0}
    for answer in (
        {"total": 1000, "vectorised": False, "axis": "steps", "start": 0.5, "mib": 200.0},
        {"sample": vars(sample(8, training=8.0))},
        {"end": True, "late": "took more than 30 s", "seconds": 30.0},
    ):
        read_answer(late, answer, ready)
    assert (late.start, late.base_mib, late.seconds) == (1.5, 100.0, 30.0)
    priced = price_from_probe(late, CONFIG)
    assert priced.cpu == pytest.approx(1.5 + 1.0 + 1000.0)
    assert priced.spread >= 3.0
    assert "30 s" in priced.note


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


# ---- miniatures
# --------------------------------------------------------------------------------------------------
def test_keys_that_count_steps_shrink_with_the_steps():
    inference = {
        "name": "x",
        "burn_in": 500,
        "thinning": 50,
        "undefended_steps": 250,
        "at": [0, 10, 20, 1000],
        "lr": 0.1,
    }
    small = shrink_steps(CONFIG | {"inference": inference}, 100, 1000)
    assert (small["steps"], small["eval_every"], small["budget"]) == (100, 50, None)
    assert small["inference"] == inference | {
        "burn_in": 50,
        "thinning": 12,  # at least four draws
        "undefended_steps": 25,
        "at": [0, 1, 2, 100],
    }
    assert shrink_steps(CONFIG | {"eval_every": 1000}, 100, 1000)["eval_every"] is None


# ---- records
# --------------------------------------------------------------------------------------------------
def frozen(name: str, row: str = "a", seed: int = 0, **keys: object) -> FrozenRun:
    config = CONFIG | {"seed": seed} | keys
    return FrozenRun(name, row, {}, [], "e", name, "digits", config)


def write_record(folder, run: FrozenRun, **facts: object) -> None:
    place = folder / "e" / run.signature
    place.mkdir(parents=True)
    known = {"state": "done", "experiment": "e", "signature": run.signature, "data": "digits",
             "choice": {role: run.config[role]["name"] for role in ("dataset", "model", "inference")},
             "seed": 0, "replicates": run.config["replicates"], "smoke": False, "started": "",
             "seconds": 60.0, "finished": {"0": {}}, "result": {}, "vectorised": False}  # fmt: skip
    (place / "run.json").write_text(json.dumps(known | facts))
    (place / "config.yaml").write_text(yaml.safe_dump(run.config))


USAGE = dict.fromkeys(PHASES, 0.0) | {
    "cpu_seconds": 50.0, "peak_mib": 700.0, "passes": 2, "start": 2.0, "training": 40.0, "files": 6.0,
}  # fmt: skip


def snapshot(folder, *runs: FrozenRun) -> Snapshot:
    return Snapshot("s", STUDY, "now", "", [], list(runs), folder)


def test_records_of_equal_runs_are_scaled_by_replicates(tmp_path):
    write_record(tmp_path, frozen("before", seed=3, replicates=2), usage=USAGE)
    write_record(tmp_path, frozen("other", seed=3, steps=2000, replicates=2), usage=USAGE)
    wanted = frozen("now", replicates=6)
    price = RecordedPrices(snapshot(tmp_path, wanted)).price(wanted)
    assert price is not None
    assert price.cpu == pytest.approx(50.0 + 2 * 40.0), "imports and figures come once"
    assert (price.mib, price.source) == (700.0, "record")
    longer = frozen("longer", steps=3000)
    assert RecordedPrices(snapshot(tmp_path, longer)).price(longer) is None


def test_records_that_do_not_tell_all_are_not_asked(tmp_path):
    facts = {"state": "done", "replicates": 2, "seconds": 60.0, "usage": USAGE}
    assert price_from_record(facts | {"usage": USAGE | {"passes": 1}}, tmp_path, 2) is None
    assert price_from_record(facts | {"state": "running"}, tmp_path, 2) is None
    assert price_from_record(facts | {"vectorised": True}, tmp_path, 4) is None
    assert price_from_record(facts | {"usage": None}, tmp_path, 4) is None


def test_runs_of_equal_cost():
    keys = [
        cost_key(frozen("a", **change).config, "d")
        for change in ({}, {"seed": 7}, {"replicates": 9}, {"steps": 5}, {"figures": False})
    ]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3


# ---- a budget
# --------------------------------------------------------------------------------------------------
ROWS = [
    {"label": "a", "model": "m", "preset": "", "experiment": "e"},
    {"label": "b", "model": "m", "preset": "", "experiment": "e", "importance": 3},
    {"label": "c", "model": "m", "preset": "", "experiment": "e", "importance": 2},
    {"label": "d", "model": "m", "preset": "", "experiment": "e"},
]
STUDY = StudyDefinition.model_validate({
    "name": "s", "description": "d", "rows": ROWS,
    "tables": [{"name": "t", "title": "t", "columns": {"r": "rmse"}}],
})  # fmt: skip


def priced(**seconds: float) -> tuple[list[FrozenRun], PriceList]:
    """A run for each row, in the order of the study, with this price."""
    runs = [frozen(row, row) for row in seconds]
    prices = {row: Price(cpu=s) if s else Price(error="bad") for row, s in seconds.items()}
    return runs, PriceList(prices)


@pytest.mark.parametrize(
    ("budget", "taken", "left_out"),
    [
        (100.0, "bcad", ""),
        (45.0, "bca", "d"),  # ties in the order of the study
        (30.0, "bd", "ca"),  # c does not fit beside b; a cheaper row does
        (9.0, "", "bcad"),
    ],
)
def test_important_rows_come_first_and_what_does_not_fit_is_left_out(budget, taken, left_out):
    runs, listed = priced(a=15.0, b=10.0, c=20.0, d=12.0)
    if budget == 30.0:
        runs, listed = priced(a=25.0, b=10.0, c=25.0, d=12.0)
    choice = choose_rows(STUDY, runs, listed, 1, budget)
    assert "".join(run.row for run in choice.runs) == taken
    assert "".join(choice.left_out) == left_out


def test_more_jobs_pay_for_more_rows_and_a_row_without_a_price_is_named():
    runs, listed = priced(a=10.0, b=10.0, c=10.0, d=0.0)
    assert len(choose_rows(STUDY, runs, listed, 1, 20.0).runs) == 2
    choice = choose_rows(STUDY, runs, listed, 2, 20.0)
    assert len(choice.runs) == 3
    assert choice.left_out == {"d": "no price: bad"}


def test_runs_that_would_end_after_the_budget_are_not_started():
    import time

    runs, _ = priced(a=1.0, b=1.0)
    deadline = Deadline(time.monotonic() + 100.0, {"a": 50.0, "b": 150.0}, "again")
    waiting = list(runs)
    deadline.drop_late(waiting)
    assert [run.row for run in waiting] == ["a"]
    assert [run.row for run in deadline.dropped] == ["b"]
    deadline.note_end(runs[0], 25.0)
    assert deadline.pace == 1.0, "sooner than expected"
    deadline.note_end(runs[0], 175.0)  # 200 s in place of 100 s
    waiting = list(runs[:1])
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
    with pytest.raises(ConfigError, match="must be a number above 0 with a unit") as caught:
        parse_budget(text)
    assert "\n" not in str(caught.value)


# ---- the table
# --------------------------------------------------------------------------------------------------
def test_rows_and_their_sum():
    runs = [frozen("a1", "a"), frozen("a2", "a"), frozen("b1", "b"), frozen("c1", "c")]
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
    assert total.to_json()["cpu_seconds_low"] == pytest.approx(
        360**2 / (300 * 1.3 + 60 * 2), abs=0.1
    )


# ---- what runs measure of themselves
# --------------------------------------------------------------------------------------------------
def test_phases_add_up_and_an_inner_phase_counts_as_itself(monkeypatch):
    # another test may have run a command in this process
    monkeypatch.setattr(usage, "_started_for_one_run", False)

    def work(seconds: float) -> None:
        ends = cpu_now() + seconds
        while cpu_now() < ends:
            pass

    meter = UsageMeter(before={"training": 10.0, "cpu_seconds": 12.0, "passes": 1})
    with meter.phase("training"):
        work(0.05)
        with meter.phase("evaluations"):
            work(0.1)
    meter.passes += 1
    facts = meter.facts()
    assert facts["training"] == pytest.approx(10.05, abs=0.03)
    assert facts["evaluations"] == pytest.approx(0.1, abs=0.03)
    assert facts["cpu_seconds"] == pytest.approx(12.15, abs=0.05)
    assert facts["passes"] == 2
    assert 10.0 < facts["peak_mib"] == pytest.approx(peak_mib(), rel=0.2)
