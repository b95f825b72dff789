"""``runs`` and ``compare`` on records written by hand."""

import json
import math
import statistics

import pytest
import yaml
from scipy.stats import wilcoxon
from support.runs.made_records import line, make_record

from runner import ConfigError, RunnerWarning, compare, load, runs


def record(folder, signature, lr=0.1, config=None, **facts):
    """Record of a run with a learning rate in its config."""
    made = make_record(folder, signature, **facts)
    written = yaml.safe_load((made / "config.yaml").read_text())
    written |= {"inference": {"name": "sgld", "lr": lr, "gradient": {"name": "score"}}} | (
        config or {}
    )
    (made / "config.yaml").write_text(yaml.safe_dump(written))
    return made


@pytest.fixture
def three(tmp_path):
    record(tmp_path, "aaaa", replicates=2)
    record(tmp_path, "bbbb", lr=0.5, seed=1, started="2026-10-01T12:00:00+00:00")
    unfinished = {"state": "interrupted", "finished": {}, "result": {}, "ended": None}
    record(
        tmp_path,
        "cccc",
        choice={"dataset": "made", "model": "mlp", "inference": "svgd", "attacker": None},
        **unfinished,
    )
    (tmp_path / "made" / "dddd").mkdir()
    (tmp_path / "made" / "dddd" / "run.json").write_text("{")
    return tmp_path


@pytest.mark.filterwarnings("ignore::runner.errors.RunnerWarning")
def test_frame_has_a_row_per_run(three):
    table = runs(three)
    assert list(table["id"]) == ["bbbb", "aaaa", "cccc"]  # by start time
    assert list(table.columns[:9]) == [
        "id",
        "experiment",
        "dataset",
        "model",
        "inference",
        "attacker",
        "seed",
        "replicates",
        "state",
    ]
    row = table.set_index("id").loc["aaaa"]
    values = [1 / 6, 1 / 6 + 1]
    assert row["rmse"] == pytest.approx(statistics.mean(values))
    assert row["rmse_se"] == pytest.approx(statistics.stdev(values) / math.sqrt(2))
    assert math.isnan(table.set_index("id").loc["bbbb", "rmse_se"])
    assert table.set_index("id").loc["cccc", "rmse"] == 1 / 6  # its last evaluation
    assert row["record"] == str(three / "made" / "aaaa")


@pytest.mark.filterwarnings("ignore::runner.errors.RunnerWarning")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"state": "done"}, ["bbbb", "aaaa"]),
        ({"seed": [1, 2]}, ["bbbb"]),
        ({"inference": ["svgd", "nuts"]}, ["cccc"]),
        ({"inference": {"lr": 0.1}}, ["aaaa", "cccc"]),
        ({"inference": {"name": "sgld", "lr": [0.5, 0.7]}}, ["bbbb"]),
        ({"inference.gradient": "score", "seed": 1}, ["bbbb"]),
        ({"model": {"width": 4}}, []),
    ],
)
def test_filters_are_columns_or_keys(three, filters, expected):
    assert list(runs(three, **filters)["id"]) == expected


@pytest.mark.filterwarnings("ignore::runner.errors.RunnerWarning")
def test_settings_are_columns_and_typos_name_the_nearest(three, tmp_path):
    assert list(runs(three, settings=["inference.lr"])["inference.lr"]) == [0.5, 0.1, 0.1]
    for given in ({"settings": ["inference.lrr"]}, {"inference": {"lrr": 1}}):
        with pytest.raises(
            ConfigError,
            match=r"runs: inference.lrr: .* did you mean inference.lr\?",
        ):
            runs(three, **given)
    none = runs(tmp_path / "nothing", seed=1, settings=["steps"])
    assert len(none) == 0
    assert {"id", "state", "steps"} <= set(none.columns)


def test_damaged_record_is_skipped_and_named(three):
    with pytest.warns(RunnerWarning, match="dddd: run.json is damaged"):
        runs(three)


def of_scores(folder, signature, values, **facts):
    result = {"rmse": values, "rmse/task": values}
    finished = {
        str(r): {name: value[r] for name, value in result.items()} for r in range(len(values))
    }
    return record(
        folder, signature, replicates=len(values), result=result, finished=finished, **facts
    )


A = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
B = [1.5, 2.7, 3.1, 4.9, 5.2, 6.3]
C = [0.0, 4.0, 1.0, 6.0, 2.0, 8.5]


def test_scores_are_side_by_side_and_pairs_are_tested(tmp_path):
    a, b, c = (
        of_scores(tmp_path, s, v, lr=lr)
        for s, v, lr in (("aaaa", A, 0.1), ("bbbb", B, 0.2), ("cccc", C, 0.1))
    )
    other = of_scores(tmp_path, "dddd", A, seed=1)
    comparison = compare(load(a), str(b), third=c, other=other)
    assert list(comparison.settings.columns) == ["aaaa", "bbbb", "third", "other"]
    assert comparison.settings.loc["inference.lr"].tolist() == ["0.1", "0.2", "0.1", "0.1"]
    assert comparison.scores.loc["rmse", ("bbbb", "mean")] == pytest.approx(statistics.mean(B))
    assert comparison.scores.loc["rmse", ("third", "n")] == 6
    assert list(comparison.scores.index) == ["rmse", "rmse/task"]
    tests = comparison.tests[comparison.tests.metric == "rmse"].set_index(["a", "b"])
    # other: another seed
    assert list(tests.index) == [("aaaa", "bbbb"), ("aaaa", "third"), ("bbbb", "third")]
    for (name, pair_name), pair in tests.iterrows():
        x, y = ({"aaaa": A, "bbbb": B, "third": C}[run] for run in (name, pair_name))
        d = [v - u for u, v in zip(x, y, strict=True)]
        assert pair["difference"] == pytest.approx(statistics.mean(d))
        assert pair["se"] == pytest.approx(statistics.stdev(d) / math.sqrt(6))
        assert pair["p"] == pytest.approx(wilcoxon(d).pvalue)
    assert tests["p"].min() == pytest.approx(2 / 2**6)
    assert tests["p_holm"].loc[("aaaa", "bbbb")] == pytest.approx(3 * 2 / 2**6)
    assert "tests" in repr(comparison)


def test_four_pairs_have_a_difference_without_p_value(tmp_path):
    a = of_scores(tmp_path, "aaaa", A[:4])
    b = of_scores(tmp_path, "bbbb", B[:4])
    pair = compare(a, b).tests.iloc[0]
    assert pair["n"] == 4
    assert pair["difference"] == pytest.approx(statistics.mean(B[:4]) - statistics.mean(A[:4]))
    assert math.isnan(pair["p"])
    assert math.isnan(pair["p_holm"])


def test_incomparable_runs_are_refused(tmp_path):
    a = of_scores(tmp_path, "aaaa", A)
    b = of_scores(tmp_path, "bbbb", B, data="others", smoke=True)
    comparison = compare(a, b)
    assert len(comparison.tests) == 0
    assert [note.split(" (")[0] for note in comparison.notes] == [
        "different data",
        "some are smoke runs",
    ]
    for given, message in (
        ((a,), "needs two or more runs, got 1"),
        ((a, a), "aaaa occurs twice"),
        ((a, "zzzz"), "no such run"),
    ):
        with pytest.raises(ConfigError, match=message):
            compare(*given)


def test_lines_of_joint_replicates_are_distinguished(tmp_path):
    folder = record(tmp_path, "aaaa", vectorised=True)
    at_once = line(1, 0, "final") | {"metrics": {"rmse": [1.0, 2.0], "time": 3.0}}
    (folder / "metrics.jsonl").write_text(json.dumps(at_once) + "\n")
    metrics = load(folder).metrics
    assert metrics[metrics.metric == "rmse"][["replicate", "value"]].to_numpy().tolist() == [
        [0, 1.0],
        [1, 2.0],
    ]
