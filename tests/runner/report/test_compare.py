"""``runner compare`` on records written by hand."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.runs.json_output import read_objects

from runner.errors import ConfigError
from runner.report.compare import (
    _add_arrow,
    differences_table,
    evidence_table,
    main,
    results_table,
)
from runner.report.compared_record import load
from runner.report.comparison import Comparison, settings_table, warnings

FACTS = {
    "state": "done",
    "experiment": "toy",
    "data": "toy-data",
    "choice": {"dataset": "toy", "model": "m", "inference": "i", "attacker": None},
    "seed": 0,
    "replicates": 3,
    "smoke": False,
    "ended": "2024-01-01T00:00:00+00:00",
    "seconds": 12.3,
    "git": {"sha": "0123456789abcdef", "diff": ""},
    "versions": {"python": "3.11.0", "torch": "2.13.0"},
    "hardware": {"cpu": "one"},
    "threads": 1,
    "finished": {"0": {"rmse": 1.0}, "1": {"rmse": 2.0}, "2": {"rmse": 3.0}},
    "result": {"rmse": [1.0, 2.0, 3.0]},
    "error": None,
}
CONFIG = {
    "seed": 0,
    "smoke": False,
    "model": {"name": "m", "width": 5},
    "inference": {"name": "i", "lr": 0.1},
}


def record(outputs: Path, signature: str, config=None, lines=None, **facts) -> Path:
    folder = outputs / "toy" / signature
    folder.mkdir(parents=True)
    written = FACTS | {"signature": signature} | facts
    (folder / "run.json").write_text(json.dumps(written))
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG | (config or {})))
    if lines is not None:
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def se(values):
    return statistics.stdev(values) / len(values) ** 0.5


def run_compare(outputs, *words):
    assert main(["compare", *words, "--output-dir", str(outputs)]) == 0


def test_only_differences_are_shown_and_absent_keys_marked(tmp_path):
    other = {"model": {"name": "m", "depth": None}, "smoke": True, "figures": False}
    runs = {"a": load(record(tmp_path, "aaaa")), "b": load(record(tmp_path, "bbbb", config=other))}
    assert settings_table(runs).T.to_dict("list") == {
        "model.width": ["5", "—"],
        "smoke": ["false", "true"],
        "model.depth": ["—", "null"],
    }
    assert settings_table(runs, everything=True).loc["inference.lr"].tolist() == ["0.1", "0.1"]


def make_checks(*passed: bool | None) -> list[dict]:
    return [
        {"about": "run", "check": f"check {i}", "passed": p, "detail": "d"}
        for i, p in enumerate(passed)
    ]


def test_failed_checks_are_listed_for_each_run(tmp_path, capsys):
    record(tmp_path, "aaaa", checks={"0": make_checks(True, True), "1": make_checks(True, False)})
    record(tmp_path, "bbbb", checks={"0": make_checks(True, None)})
    record(tmp_path, "cccc")  # previous record
    run_compare(tmp_path, "aaaa", "bbbb", "cccc")
    shown = capsys.readouterr()
    assert "run\tchecks\t1 of 2 failed: check 1\t1 passed, 1 not checked\t—" in shown.out
    assert "note: aaaa failed checks (check 1)" in shown.err
    assert "bbbb failed" not in shown.err


def test_results_have_standard_errors_and_paired_differences(tmp_path):
    scores_of_run = {"rmse/joint 1": [5.0], "rmse": [1.0, 2.0, 6.0], "nlpp": [0.5]}
    other = {"rmse": [2.0, 2.5, 8.0], "accuracy": [1.0]}
    results = {"aaaa": scores_of_run, "bbbb": other}
    runs = {name: load(record(tmp_path, name, result=r)) for name, r in results.items()}
    comparison = Comparison.of(runs)
    both = results_table(comparison.scores).assign(difference=differences_table(comparison))
    rows = both.T.to_dict("list")
    assert list(rows) == ["rmse", "nlpp", "accuracy", "rmse/joint 1"]
    change = [1.0, 0.5, 2.0]
    expected = f"{statistics.mean(change):.4g} ± {se(change):.4g} (paired)"
    assert (rows["rmse"][0], rows["rmse"][2]) == (
        f"3 ± {se(scores_of_run['rmse']):.4g} (n=3)",
        expected,
    )
    assert rows["nlpp"] == ["0.5", "—", "—"]


def test_runs_without_a_common_seed_have_no_difference(tmp_path):
    runs = {f"{seed}": load(record(tmp_path, f"run{seed}", seed=seed)) for seed in (0, 1)}
    assert differences_table(Comparison.of(runs)).to_dict("list") == {"1": ["—"]}


def test_runs_are_tested_against_the_first_with_corrected_p(tmp_path, capsys):
    base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    results = {
        "aaaa": base,
        "bbbb": [v + 0.1 * (i + 1) for i, v in enumerate(base)],
        "cccc": base[::-1],
        "dddd": base[:4],
    }
    runs = {
        name: load(record(tmp_path, name, result={"rmse": values}))
        for name, values in results.items()
    }
    comparison = Comparison.of(runs, "aaaa")
    assert results_table(comparison.scores).shape == (1, 4)
    ((name, *apart),) = differences_table(comparison).itertuples()
    assert (name, len(apart)) == ("rmse", 3)
    # all six signs equal: 2/2⁶, for two tests
    assert apart[0] == "0.35 ± 0.07638 (paired), p 0.031 (Holm 0.062)"
    assert apart[1].endswith("(paired), p 1 (Holm 1)")
    assert apart[2] == "0 ± 0 (paired)", "the replicates that both have; too few for a p"
    run_compare(tmp_path, *results)
    assert (
        "less aaaa\trmse\t0.35 ± 0.07638 (paired), p 0.031 (Holm 0.062)" in capsys.readouterr().out
    )


def evaluate(step, replicate, phase="evaluation", **metrics):
    where = {"step": step, "replicate": replicate, "time": 1, "phase": phase}
    return where | {"metrics": metrics}


def test_unfinished_run_shows_its_last_evaluation(tmp_path):
    lines = [
        evaluate(10, 0, rmse=9.0),
        evaluate(20, 0, "final", rmse=4.0),
        evaluate(10, 1, rmse=5.0),
        evaluate(12, 1, "train", loss=1.0),
    ]
    run = load(record(tmp_path, "aaaa", state="interrupted", result={}, lines=lines))
    assert (run.result, run.step) == ({"rmse": [4.0, 5.0]}, 10)
    assert warnings([run]) == ["aaaa is interrupted: its scores are from the evaluation at step 10"]
    lines = [evaluate(10, 0, rmse=[1.0, 2.0])]
    together = load(record(tmp_path, "bbbb", state="running", result={}, lines=lines))
    assert together.result == {"rmse": [1.0, 2.0]}
    nothing = load(record(tmp_path, "cccc", state="failed", result={}))
    assert warnings([nothing]) == ["cccc is failed: it has no evaluation yet"]


def test_other_data_and_smoke_runs_are_not_compared(tmp_path):
    a = load(record(tmp_path, "aaaa"))
    b = load(record(tmp_path, "bbbb", data="toy-sim", smoke=True))
    first, second = warnings([a, b])
    assert first == "different data (toy-data, toy-sim): the results are not comparable"
    assert "smoke" in second
    assert "paired" not in results_table(Comparison.of({"a": a, "b": b}).scores).iloc[0, -1]


def test_command_prints_differences(tmp_path, capsys):
    record(tmp_path, "aaaa1111")
    facts = {"seed": 1, "threads": 2, "versions": {"torch": "2.14.0"}}
    folder = record(tmp_path, "bbbb2222", config={"seed": 1}, **facts)
    run_compare(tmp_path, "aaaa", str(folder))
    lines = [tuple(line.split("\t")) for line in capsys.readouterr().out.splitlines()]
    assert {
        ("run", "state", "done", "done"),
        ("run", "threads", "1", "2"),
        ("run", "torch", "2.13.0", "2.14.0"),
        ("config", "seed", "0", "1"),
    } <= set(lines)
    assert not any(line[1] == "processor" for line in lines)


def test_models_with_evidence_have_posterior_probabilities(tmp_path, capsys):
    logs = {"a1": [0.0, -1000.0], "b2": [math.log(3), -1000.0 - math.log(4)], "c3": None}
    for name, values in logs.items():
        result = {"rmse": [1.0, 1.0]} | ({"log_evidence": values} if values else {})
        record(tmp_path, name * 6, result=result, replicates=2)
    runs = {name: load(tmp_path / "toy" / (name * 6)) for name in logs}
    ((heading, first, second, third),) = evidence_table(runs).itertuples()
    assert heading == "p(model | y)"
    assert first.startswith("0.525 ±")  # ¼ and ⅘
    assert second.startswith("0.475 ±")
    assert third == "—"
    assert evidence_table({name: runs[name] for name in ("b2", "c3")}).empty
    run_compare(tmp_path, "a1", "b2")
    assert "evidence\tp(model | y)\t0.525" in capsys.readouterr().out
    run_compare(tmp_path, "a1", "b2", "--json")
    lines = read_objects("compare", capsys.readouterr().out)
    means = [line["mean"] for line in lines if line["section"] == "evidence"]
    assert means == pytest.approx([0.525, 0.475])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["aaaa"], "give two runs or more, not 1"),
        (["aaaa", "zzzz"], "zzzz: no such run"),
        (["aaaa", "bbbb"], "damaged"),
    ],
)
def test_incomparable_runs_are_named(tmp_path, names, message):
    record(tmp_path, "aaaa1111")
    (record(tmp_path, "bbbb2222") / "run.json").write_text('{"state"')
    with pytest.raises(ConfigError, match=message):
        run_compare(tmp_path, *names)


def test_compare_needs_no_torch(tmp_path):
    record(tmp_path, "aaaa")
    record(tmp_path, "bbbb")
    code = (
        "import sys; from runner.report.compare import main; "
        f"code = main(['compare', 'aaaa', 'bbbb', '--output-dir', {str(tmp_path)!r}]); "
        "sys.exit(code or 'torch' in sys.modules or 'mlflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_scores_show_their_direction_on_a_terminal():
    names = map(_add_arrow, ["accuracy", "nlpp/a", "clusters"])
    assert list(names) == ["accuracy ↑", "nlpp/a ↓", "clusters"]
