"""Rows of a CSV or Parquet file: types of columns, test rows, and all errors of the file."""

from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from numpy.testing import assert_allclose
from support.runs.configured import component, double, load, make_setting
from torch.testing import assert_close

from components import errors
from components.errors import (
    ConfigMismatchError,
    DamagedFileError,
    DataUnavailableError,
)
from runner.execution.rng import Streams

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILE = str(FIXTURES / "table.csv")
WHO = {"path": FILE, "inputs": ["age", "city", "owner"]}


def test_tasks_with_gaps_are_standardised_by_training_rows():
    problem, _ = load("csv", **WHO, targets=["height", "weight"], split="part")
    frame = pd.read_csv(FILE)
    train = frame[frame.part == "train"]
    test = frame[frame.part == "test"]
    assert (problem.n, len(problem.test.x)) == (len(train), len(test))
    assert (problem.n_inputs, problem.n_tasks) == (4, 2)
    age = (train.age - train.age.mean()) / train.age.std(ddof=0)
    assert_allclose(problem.train.x[:, 0], age, atol=1e-12)
    rome = (train.city == "Rome") * 1.0
    assert_allclose(problem.train.x[:, 2], (rome - rome.mean()) / rome.std(ddof=0), atol=1e-12)
    weight = (train.weight - train.weight.mean()) / train.weight.std(ddof=0)
    assert problem.train.mask[:, 1].tolist() == train.weight.notna().tolist()
    assert_allclose(problem.train.y[problem.train.mask[:, 1], 1], weight.dropna(), atol=1e-12)
    assert_close(problem.y_mean, double([train.height.mean(), train.weight.mean()]))
    assert problem.describe()["columns"] == "age: numbers; city: 3 texts; owner: true or false"


def test_folds_are_the_replicates():
    frame = pd.read_csv(FILE)
    setting = make_setting(replicates=3)
    keys = WHO | {"targets": ["kind"], "labels": "binary"}
    dataset = component("dataset", "csv", **keys, fold="week")
    assert dataset.folds(Path()) == 3
    assert component("dataset", "csv", **keys).folds(Path()) is None
    for r in range(3):
        problem = dataset.load(Streams(0, replicate=r), setting)
        held = frame[frame.week == r + 1]
        assert problem.test.y[:, 0].tolist() == (held.kind == "b").astype(int).tolist()
    with pytest.raises(
        ConfigMismatchError,
        match=r"replicates: .* 3 folds; lower replicates",
    ):
        dataset.load(Streams(0, replicate=3), setting)


def test_task_column_assigns_labels_to_tasks():
    problem, _ = load(
        "csv", path=FILE, targets=["height"], task="city", inputs=["age"], split="part"
    )
    frame = pd.read_csv(FILE)
    train = frame[frame.part == "train"]
    assert problem.task_names == ["Bern", "Oslo", "Rome"]
    for t, city in enumerate(problem.task_names):
        assert problem.train.mask[:, t].tolist() == (train.city == city).tolist()
        mine = train[train.city == city].height
        assert_allclose(problem.y_mean[t], mine.mean(), rtol=1e-12)
        assert_allclose(
            problem.train.y[problem.train.mask[:, t], t],
            (mine - mine.mean()) / mine.std(ddof=0),
            atol=1e-12,
        )


def test_parquet_equals_csv_rows(tmp_path):
    pd.read_csv(FILE).to_parquet(tmp_path / "table.parquet")
    keys = {"targets": ["height"], "inputs": ["age", "city", "owner"], "split": "part"}
    ours, _ = load("csv", path=FILE, **keys)
    theirs, _ = load("csv", path=str(tmp_path / "table.parquet"), **keys)
    assert_close(theirs.train.x, ours.train.x, rtol=0, atol=0)
    assert_close(theirs.test.y, ours.test.y, rtol=0, atol=0)


def test_held_out_rows_depend_only_on_seed_and_share():
    def test_inputs_of(seed):
        return load("csv", seed=seed, **WHO, targets=["height"], test_share=0.25)[0].test.x

    assert len(test_inputs_of(0)) == 6
    assert not torch.equal(test_inputs_of(0), test_inputs_of(1))


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["c10", "c2", "c2"], ["c2", "c7", "c10"], [2, 0, 0]),
        (["7.0", "0", "0.0"], 12, [7, 0, 0]),
        (["01", "2", "11"], "1-12", [0, 1, 10]),
        (["true", "False", "true"], [False, True], [1, 0, 1]),
        (["a", "a", "a"], ["b", "a"], [1, 1, 1]),
        (["1", "999", "1"], "0-999", [1, 999, 1]),
    ],
)
def test_classes_are_in_the_order_of_a_network(load_table, labels, classes, numbers):
    """Includes classes that the file lacks, and training labels of a single class."""
    rows = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    problem = load_table(rows, labels="classes", classes=classes, standardise=False)
    ranges = {12: range(12), "1-12": range(1, 13), "0-999": range(1000)}
    assert problem.classes == [
        str(c) for c in (classes if isinstance(classes, list) else ranges[classes])
    ]
    both = [(b.x[:, 0].tolist(), b.y[:, 0].tolist()) for b in (problem.train, problem.test)]
    pairs = sorted(pair for x, y in both for pair in zip(x, y, strict=True))
    assert [y for _, y in pairs] == numbers


def test_classes_are_ordered_by_size_or_by_alphabet(load_table):
    rows = "x,y\n" + "".join(
        f"{i},{v}\n" for i, v in enumerate(["10", "9", "2", "9", "10", "2", "9", "2"])
    )
    problem = load_table(rows, labels="classes")
    order = "2, 9, 10 (dataset.classes gives another order)"
    assert (problem.n_classes, problem.describe()["classes"]) == (3, order)
    two = load_table(
        "x,y\n" + "".join(f"{i},{v}\n" for i, v in enumerate(["no", "yes"] * 4)),
        labels="binary",
    )
    assert two.describe()["classes"] == "no, yes (log odds refer to yes)"


@pytest.mark.parametrize(
    "case",
    [
        *yaml.safe_load((FIXTURES / "refused_tables.yaml").read_text(encoding="utf-8")),
        {
            "content": "x,y\n" + "".join(f"t{i},{i}\n" for i in range(40)),
            "said": "x has 40 distinct texts, but at most 30",
        },
        {
            "content": "x,y\n" + "".join(f"{i},{i}\n" for i in range(70)),
            "keys": {"labels": "classes"},
            "said": "70 classes among 70 labels, mostly unique",
        },
    ],
)
def test_errors_name_the_problem_and_the_fix(load_table, case):
    error = getattr(errors, case.get("error", "ConfigMismatchError"))
    with pytest.raises(error, match=case["said"]):
        load_table(case["content"], **case.get("keys", {}))


@pytest.mark.parametrize("content", [",x,y\n0,4,2\n1,2,3\n2,3,5\n", "x,y,\n4,2,\n2,3,\n3,5,\n"])
def test_counting_or_empty_column_is_no_input(load_table, content):
    problem = load_table(content)
    assert problem.n_inputs == 1
    assert "without a name" in problem.describe()["left out"]


def test_nearly_constant_input_is_called_constant(load_table):
    rows = "".join(f"{i},{1e9 + 1e-6 * (i % 2)!r},{i * i}\n" for i in range(20))
    assert load_table("x,z,y\n" + rows).describe()["constant inputs"].startswith("z:")


def test_missing_file_and_invalid_parquet_are_named(tmp_path):
    with pytest.raises(
        DataUnavailableError, match=r"dataset.path=gone.csv: the file does not exist"
    ):
        load("csv", path="gone.csv")
    (tmp_path / "a.parquet").write_text("x,y")
    with pytest.raises(DamagedFileError, match=r"not a Parquet file .*; replace it"):
        load("csv", path=str(tmp_path / "a.parquet"))


def test_many_columns_are_summarised_by_kind(load_table):
    names = [f"p{i}" for i in range(20)]
    rows = "".join(",".join(["1", "2"] * 10) + f",{'ab'[i % 2]},{i}\n" for i in range(9))
    columns = load_table(",".join([*names, "sort", "y"]) + "\n" + rows).describe()["columns"]
    assert columns == "p0, … p19 (20): numbers; sort: 2 texts"
