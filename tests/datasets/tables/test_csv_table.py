"""Rows of a CSV or Parquet file: what columns are taken for, who is tested, and every way in which
the file can be wrong."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from support.runs.configured import component, double, load, make_setting
from torch.testing import assert_close

from components.attackers.input_space import input_space
from components.errors import (
    ConfigMismatchError,
    DamagedFileError,
    DataUnavailableError,
    QuestionableConfigWarning,
)
from runner.execution.rng import Streams

FILE = str(Path(__file__).parent.parent.parent / "fixtures" / "table.csv")
WHO = {"path": FILE, "inputs": ["age", "city", "owner"]}


def written(tmp_path: Path, content: str, **keys) -> object:
    (tmp_path / "mine.csv").write_text(content, encoding="utf-8")
    setting = make_setting(tmp_path)
    return component("dataset", "csv", path="mine.csv", **keys).load(Streams(0), setting)


def test_two_tasks_with_missing_labels_standardised_by_their_training_rows():
    problem, _ = load("csv", **WHO, targets=["height", "weight"], split="part")
    frame = pd.read_csv(FILE)
    train, test = frame[frame.part == "train"], frame[frame.part == "test"]
    assert (problem.n, len(problem.test.x), problem.n_inputs, problem.n_tasks) == (
        len(train),
        len(test),
        4,
        2,
    )
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
    frame, setting = (
        pd.read_csv(FILE),
        make_setting(replicates=3),
    )
    dataset = component("dataset", "csv", **WHO, targets=["kind"], labels="binary", fold="week")
    assert dataset.folds(Path()) == 3
    assert (
        component("dataset", "csv", **WHO, targets=["kind"], labels="binary").folds(Path()) is None
    )
    for r in range(3):
        problem = dataset.load(Streams(0, replicate=r), setting)
        held = frame[frame.week == r + 1]
        assert problem.test.y[:, 0].tolist() == (held.kind == "b").astype(int).tolist()
    with pytest.raises(
        ConfigMismatchError, match="replicates: week has 3 folds; set replicates to at most that"
    ):
        dataset.load(Streams(0, replicate=3), setting)


def test_a_column_says_whose_label_a_row_has():
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


def test_parquet_is_read_as_the_same_rows(tmp_path):
    pd.read_csv(FILE).to_parquet(tmp_path / "table.parquet")
    keys = {"targets": ["height"], "inputs": ["age", "city", "owner"], "split": "part"}
    ours, _ = load("csv", path=FILE, **keys)
    theirs, _ = load("csv", path=str(tmp_path / "table.parquet"), **keys)
    assert_close(theirs.train.x, ours.train.x, rtol=0, atol=0)
    assert_close(theirs.test.y, ours.test.y, rtol=0, atol=0)


def test_rows_put_aside_by_chance_depend_on_seed_and_share_alone():
    def tested(seed: int) -> torch.Tensor:
        return load("csv", seed=seed, **WHO, targets=["height"], test_share=0.25)[0].test.x

    assert len(tested(0)) == 6
    assert_close(tested(0), tested(0))
    assert not torch.equal(tested(0), tested(1))


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
def test_classes_are_in_the_order_of_a_network(tmp_path, labels, classes, numbers):
    """Also classes that the file lacks, and training labels that are all of one class."""
    rows = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    problem = written(tmp_path, rows, labels="classes", classes=classes, standardise=False)
    ranges = {12: range(12), "1-12": range(1, 13), "0-999": range(1000)}
    assert problem.classes == [
        str(c) for c in (classes if isinstance(classes, list) else ranges[classes])
    ]
    both = [(b.x[:, 0].tolist(), b.y[:, 0].tolist()) for b in (problem.train, problem.test)]
    pairs = sorted(pair for x, y in both for pair in zip(x, y, strict=True))
    assert [y for _, y in pairs] == numbers


def test_classes_are_ordered_by_size_or_by_alphabet(tmp_path):
    rows = "x,y\n" + "".join(
        f"{i},{v}\n" for i, v in enumerate(["10", "9", "2", "9", "10", "2", "9", "2"])
    )
    problem = written(tmp_path, rows, labels="classes")
    order = "2, 9, 10 (dataset.classes gives another order)"
    assert (problem.n_classes, problem.describe()["classes"]) == (3, order)
    two = written(
        tmp_path,
        "x,y\n" + "".join(f"{i},{v}\n" for i, v in enumerate(["no", "yes"] * 4)),
        labels="binary",
    )
    assert two.describe()["classes"] == "no, yes (log odds are of yes)"


@pytest.mark.parametrize(
    ("content", "keys", "error", "said"),
    [
        (
            "x,y\n1,2\n2,3\n3,5\n",
            {"targets": ["z"]},
            ConfigMismatchError,
            "dataset.targets=z: .*mine.csv has no such column; there are x",
        ),
        (
            "x,y\n1,2\n2,3\n3,5\n",
            {"fold": "z"},
            ConfigMismatchError,
            "dataset.fold=z: .* has no such column",
        ),
        (
            "x,y\n1,2\n2,3\n3,5\n",
            {"inputs": ["y"]},
            ConfigMismatchError,
            "dataset.inputs: y has another use",
        ),
        (
            "y\n2\n3\n5\n",
            {},
            ConfigMismatchError,
            "dataset.inputs: .* has no column left for inputs",
        ),
        (
            "x,y\n1,2\n,3\n3,5\n",
            {},
            ConfigMismatchError,
            "line 3: x is missing; set dataset.gaps=impute or drop, fill it, or name the",
        ),
        (
            "x,y\n" + "1,2\n" * 12 + "1o,3\n",
            {},
            ConfigMismatchError,
            "line 14: x is '1o', no number as the others are; repair it",
        ),
        (
            "x,y\n1,2\n2,much\n3,5\n",
            {},
            ConfigMismatchError,
            "line 3: y is 'much', no number; repair it, add it to dataset.missing, or set",
        ),
        (
            "x,y\n1,2\n2,2\n3,2\n",
            {},
            ConfigMismatchError,
            "dataset.targets: the labels of task y are all equal",
        ),
        (
            "x,y\n1,a\n2,b\n3,c\n",
            {"labels": "binary"},
            ConfigMismatchError,
            r"3 classes \(a, b, c\), two are asked for; set dataset.labels",
        ),
        (
            "x,y\n1,a\n2,a\n3,a\n",
            {"labels": "classes"},
            ConfigMismatchError,
            r"1 classes \(a\), two or more are needed",
        ),
        (
            "x,y,s\n1,2,train\n2,3,rest\n",
            {"split": "s"},
            ConfigMismatchError,
            "line 3: s is 'rest'; write train or test",
        ),
        (
            "x,y,s\n1,2,train\n2,3,test\n",
            {"split": "s"},
            ConfigMismatchError,
            "1 rows to learn from and 1 to test on; at least 2 and 1",
        ),
        (
            "x,y\n" + "".join(f"t{i},{i}\n" for i in range(40)),
            {},
            ConfigMismatchError,
            "x holds 40 different texts, at most 30",
        ),
        ("x,x,y\n1,2,3\n", {}, ConfigMismatchError, "two columns are called 'x'; rename one"),
        ("x,y\n", {}, DamagedFileError, "holds no line after its names"),
        (
            "x,y\n1,2\n1,2,3\n",
            {},
            DamagedFileError,
            "line 3: 3 cells under 2 names; .* repair lines that differ, or set dataset.delimiter",
        ),
        ("x,y\n1,2\n1\n", {}, DamagedFileError, "line 3: 1 cells under 2 names"),
        (
            "x,y\n1,1\n2,2.5\n3,1\n",
            {"labels": "classes"},
            ConfigMismatchError,
            "2.5 is a number with a fraction, no class",
        ),
        (
            "x,y\n" + "".join(f"{i},{i}\n" for i in range(70)),
            {"labels": "classes"},
            ConfigMismatchError,
            "70 classes of 70 labels, most",
        ),
        ("", {}, DamagedFileError, "the file is empty, .* holds nothing"),
        (
            "x,y\n1,a\n2,c\n3,a\n",
            {"labels": "classes", "classes": ["a", "b"]},
            ConfigMismatchError,
            r"dataset\.classes: y holds 'c', which is not among the 2 classes \(a, …, b\); name it",
        ),
        (
            "x,y\n1,2\n2,1\n3,1\n",
            {"labels": "classes", "classes": 2},
            ConfigMismatchError,
            r"holds '2', .* as \[cat, dog\] or 1-2",
        ),
        (
            "x,y\n1,2\n2,1.0\n3,01\n",
            {"labels": "classes", "classes": 3},
            ConfigMismatchError,
            r"classes=3: no label of y is 0, .* set dataset\.classes=0-2 or 1-3",
        ),
        (
            "x,y\n1,2\n",
            {"classes": 2},
            ValueError,
            r"dataset\.labels=real has at most 0; set it to",
        ),
        ("", {"labels": "binary", "classes": 3}, ValueError, "binary has at most 2"),
        ("", {"labels": "classes", "classes": ["a", "a"]}, ValueError, "list of different names"),
        ("", {"labels": "classes", "classes": "a"}, ValueError, "list of different names"),
        # whose sd is 1e-17
        (
            "x,y\n1,0.1\n2,0.1\n3,0.1\n4,0.1\n",
            {},
            ConfigMismatchError,
            "labels of task y are all equal",
        ),
        (
            "x,y\n1,1e-200\n2,2e-200\n3,1e-200\n",
            {},
            ConfigMismatchError,
            "the label of task y .* squares are 0; give .* smaller units",
        ),
        (
            "x,y\n1,1e200\n2,2e200\n3,1e200\n",
            {},
            ConfigMismatchError,
            "the label of task y .* no numbers; give .* larger units",
        ),
        (
            "x,y\n1e-200,1\n2e-200,2\n1e-200,3\n3e-200,3\n",
            {},
            ConfigMismatchError,
            "input 1 .* squares are 0; give .* smaller units",
        ),
        (
            "x,y\n10%,1\n20%,2\n10%,3\n",
            {},
            ConfigMismatchError,
            "line 2: x is '10%', no number; .*write numbers as -1.5, without %",
        ),
        ("x,y\n1,$10\n2,$20\n3,$5\n", {}, ConfigMismatchError, "line 2: y is .*signs of money"),
        (
            "x,y\n1,2\n2,(3)\n3,5\n",
            {},
            ConfigMismatchError,
            r"line 3: y is '\(3\)', no number.*brackets",
        ),
        (
            "x,y\n1,1\n2,1.0\n3,0\n",
            {"labels": "binary"},
            ConfigMismatchError,
            "classes 1 and 1.0 are one number",
        ),
        (
            "x,y\n1,Yes\n2,yes\n3,No\n",
            {"labels": "classes"},
            ConfigMismatchError,
            "classes Yes and yes differ in capitals only; write it in one way",
        ),
        (
            ",x,y\n5,1,2\n7,2,2\n3,3,5\n",
            {},
            ConfigMismatchError,
            "column 1 has no name; give it one, or leave it out by dataset.exclude",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_mend(tmp_path, content, keys, error, said):
    with pytest.raises(error, match=said):
        written(tmp_path, content, **keys)


@pytest.mark.parametrize("content", [",x,y\n0,4,2\n1,2,3\n2,3,5\n", "x,y,\n4,2,\n2,3,\n3,5,\n"])
def test_a_column_that_counts_rows_or_is_empty_is_no_input(tmp_path, content):
    problem = written(tmp_path, content)
    assert problem.n_inputs == 1
    assert "without a name" in problem.describe()["left out"]


def test_an_input_that_varies_by_rounding_alone_is_called_constant(tmp_path):
    rows = "".join(f"{i},{1e9 + 1e-6 * (i % 2)!r},{i * i}\n" for i in range(20))
    assert written(tmp_path, "x,z,y\n" + rows).describe()["constant inputs"].startswith("z:")


def test_a_file_that_is_not_there_and_one_that_is_no_parquet(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"dataset.path=gone.csv: no such file"):
        load("csv", path="gone.csv")
    (tmp_path / "a.parquet").write_text("x,y")
    with pytest.raises(DamagedFileError, match="no Parquet file"):
        load("csv", path=str(tmp_path / "a.parquet"))


PIXELS = "a,b,c,d,y\n" + "".join(f"{i},{255 - i},{i},0,{i % 2}\n" for i in range(0, 200, 9))


def test_raw_columns_are_as_they_stand_in_the_file(tmp_path):
    problem = written(
        tmp_path, PIXELS, labels="classes", standardise=False, bounds=[0, 255], image_shape=[2, 2]
    )
    frame = pd.read_csv(tmp_path / "mine.csv")
    rows = torch.cat([problem.train.x, problem.test.x])
    assert sorted(rows[:, 1].tolist()) == sorted(frame.b.tolist())
    assert (problem.bounds, problem.image_shape) == ((0, 255), (2, 2))
    assert problem.describe()["inputs"] == "4, raw units in [0, 255]"
    assert written(tmp_path, PIXELS, labels="classes").describe()["inputs"] == "4, standardised"


def test_raw_labels_are_in_their_own_units(tmp_path):
    problem = written(tmp_path, PIXELS, targets=["b"], inputs=["a"], standardise=False)
    assert (problem.y_mean, problem.y_std) == (None, None)
    assert_close(problem.train.y, 255 - problem.train.x)


def test_who_attacks_columns_is_told_in_which_units(tmp_path):
    attacker = component("attacker", "fgsm")
    units = {}
    for standardise in (True, False):
        problem = written(tmp_path, PIXELS, labels="classes", standardise=standardise)
        problem.attacker = attacker
        units[standardise] = problem.describe()["inputs"]
    assert (
        units[True]
        == "4, standardised (attacker.eps is in standard deviations of the training rows)"
    )
    assert units[False] == "4, raw units (attacker.eps is in the units of the columns)"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"bounds": [0, 255], "standardise": True}, r"set dataset\.standardise=false as well"),
        (
            {"bounds": [255, 0]},
            r"bounds: must be a smaller and a larger number, e\.g\. \[0, 255\], not \[255, 0\]",
        ),
        (
            {"bounds": [0, 200]},
            r"mine\.csv, line 2: b is 255, outside of dataset\.bounds=\[0, 200\]",
        ),
        (
            {"image_shape": [8, 8]},
            r"dataset\.image_shape=\[8, 8\]: is of 64 pixels, and .*mine\.csv has 4 inputs",
        ),
        ({"image_shape": [4]}, r"image_shape: must be \[height, width\]"),
    ],
)
def test_bounds_and_shapes_that_do_not_fit(tmp_path, keys, said):
    with pytest.raises(ValueError, match=said):
        written(tmp_path, PIXELS, labels="classes", **{"standardise": False} | keys)


def test_many_columns_are_told_by_kind(tmp_path):
    names = [f"p{i}" for i in range(20)]
    rows = "".join(",".join(["1", "2"] * 10) + f",{'ab'[i % 2]},{i}\n" for i in range(9))
    told = written(tmp_path, ",".join([*names, "sort", "y"]) + "\n" + rows).describe()["columns"]
    assert told == "p0, … p19 (20): numbers; sort: 2 texts"


def test_sizes_are_in_the_units_of_raw_columns(tmp_path):
    problem = written(tmp_path, PIXELS, labels="classes", standardise=False, bounds=[0, 255])
    space = input_space(problem)
    space.check_sizes([0, 8, 16], "linf", problem.name)
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker\.eps: 300 leads from any input .* \[0, 255\], .* e\.g\. 8 for 8 of 255",
    ):
        space.check_sizes([0, 300], "linf", problem.name)
    with pytest.warns(
        QuestionableConfigWarning,
        match=r"attacker\.eps: at most 0\.0314, and inputs .* 8 of 255 grey levels are 8",
    ):
        space.check_sizes([0, 8 / 255], "linf", problem.name)
