"""The harness of the benchmarks, and every benchmark at tiny sizes."""

import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from scripts import bench
from scripts.benchmarks.harness import Benchmark, Measured, Option, Report, read_table
from scripts.pages import format_table
from scripts.peers.installed import ABSENT

ROOT = Path(__file__).parents[2]


def test_options_of_the_command_line_override_smoke():
    options = {"n": Option(default=[10, 100], smoke=[2]), "dtype": Option(default="float64")}
    benchmark = Benchmark(measure="b.measure", peer="P", options=options)
    assert benchmark.parse("b", []).n == [10, 100]
    tiny = benchmark.parse("b", ["--smoke", "--dtype", "float32"])
    assert (tiny.n, tiny.dtype) == ([2], "float32")
    assert benchmark.parse("b", ["--smoke", "--n", "3", "4"]).n == [3, 4]


def test_variants_are_timed_in_turn_after_a_warm_up():
    calls = []
    clock = count()
    ways = {name: lambda name=name: calls.append(name) for name in ("ours", "slow", "other")}
    seconds = Report({}).time(ways, 3, clock=lambda: float(next(clock)), at_most={"slow": 1})
    assert calls[:5] == ["ours", "other", "ours", "slow", "other"]
    assert {name: len(values) for name, values in seconds.items()} == {
        "ours": 3,
        "slow": 1,
        "other": 3,
    }


def test_variant_can_time_itself_and_ratios_are_paired():
    report = Report({})
    ours = iter([1.0, 2.0, 4.0])
    theirs = iter([3.0, 2.0, 20.0])
    ways = {"ours": lambda: Measured(next(ours)), "theirs": lambda: Measured(next(theirs))}
    seconds = report.time(ways, 3, warmups=0)
    report.compare("case", seconds["ours"], seconds["theirs"])
    assert report.ratios["case"] == [3.0, 1.0, 5.0]
    report.record("ten", range(1, 11))
    assert report.ratios["ten"] == [5.5, 2.0, 9.0]  # 2 to 9 contain the median with 98%


def test_unequal_results_are_refused():
    report = Report({})
    with pytest.raises(AssertionError, match="bounds differ"):
        report.assert_close("bounds", np.ones(3), np.ones(3) * 1.1, 1e-3)
    rng = np.random.default_rng(0)
    samples = {"ours": rng.normal(0, 1, (100, 2)), "theirs": rng.normal([0, 2], 1, (100, 2))}
    with pytest.raises(AssertionError, match="theirs"):
        report.assert_equal_means(samples)


def test_race_compares_the_first_variant_with_each_other():
    report = Report({})
    seconds = {"ours": 1.0, "a": 2.0, "b": 3.0}
    ways = {name: lambda value=value: Measured(value) for name, value in seconds.items()}
    report.race("against {}", ways, 2)
    assert report.ratios == {"against a": [2.0] * 3, "against b": [3.0] * 3}


def test_table_lists_every_function_that_measures():
    functions = {
        f"{path.stem}.{name}"
        for path in bench.FOLDER.glob("*.py")
        for name in re.findall(r"^def (measure\w*)\(options: ", path.read_text("utf-8"), re.M)
    }
    assert functions == {benchmark.measure for benchmark in read_table().values()}


def test_table_has_goals_and_tiny_sizes():
    dlm = read_table()["dlm"]
    assert (dlm.peer, dlm.goals) == ("statsmodels", {"50 ms by ours": 1.0})
    assert dlm.parse("dlm", ["--smoke"]).sets == [2]


@pytest.mark.parametrize(
    ("goal", "verdict"), [(0.9, "reached"), (1.5, "undecided"), (3.1, "MISSED")]
)
def test_interval_of_a_ratio_decides_about_its_goal(goal, verdict):
    line = {"benchmark": "b", "peer": "P", "ratios": {"c": [2.0, 1.0, 3.0]}, "goals": {"c": goal}}
    page = format_table(bench.HEADER, bench.to_rows(line))
    assert f"| b | P | c | 2.00x | 1.00 to 3.00 | {goal} | {verdict} |" in page


def test_speed_page_is_current():
    page = bench.KEPT.with_suffix(".md").read_text(encoding="utf-8")
    assert page == bench.write_page(bench.read_kept())


@pytest.mark.slow
@pytest.mark.parametrize("name", read_table())
def test_benchmark_runs_at_tiny_sizes(name):
    command = [sys.executable, "-m", "scripts.benchmarks", name, "--smoke"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if result.returncode == ABSENT:
        pytest.skip(result.stderr.splitlines()[-1])
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["benchmark"] == name
    assert report["ratios"]
    assert all(0 < low <= median <= high for median, low, high in report["ratios"].values())
