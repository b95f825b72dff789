"""Columns of a CSV file in their own units: bounds, image shapes and attack sizes."""

import pandas as pd
import pytest
import torch
from support.runs.configured import component
from torch.testing import assert_close

from components.attackers.input_space import input_space
from components.errors import (
    ConfigMismatchError,
    QuestionableConfigWarning,
)

PIXELS = "a,b,c,d,y\n" + "".join(f"{i},{255 - i},{i},0,{i % 2}\n" for i in range(0, 200, 9))


def test_raw_columns_equal_the_file(tmp_path, load_table):
    problem = load_table(
        PIXELS, labels="classes", standardise=False, bounds=[0, 255], image_shape=[2, 2]
    )
    frame = pd.read_csv(tmp_path / "mine.csv")
    rows = torch.cat([problem.train.x, problem.test.x])
    assert sorted(rows[:, 1].tolist()) == sorted(frame.b.tolist())
    assert (problem.bounds, problem.image_shape) == ((0, 255), (2, 2))
    assert problem.describe()["inputs"] == "4, raw units in [0, 255]"
    assert load_table(PIXELS, labels="classes").describe()["inputs"] == "4, standardised"


def test_raw_labels_keep_their_units(load_table):
    problem = load_table(PIXELS, targets=["b"], inputs=["a"], standardise=False)
    assert (problem.y_mean, problem.y_std) == (None, None)
    assert_close(problem.train.y, 255 - problem.train.x)


def test_attacker_on_columns_is_given_their_units(load_table):
    attacker = component("attacker", "fgsm")
    units = {}
    for standardise in (True, False):
        problem = load_table(PIXELS, labels="classes", standardise=standardise)
        problem.attacker = attacker
        units[standardise] = problem.describe()["inputs"]
    assert "attacker.eps is in standard deviations" in units[True]
    assert "attacker.eps is in the units of the columns" in units[False]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bounds": [0, 255], "standardise": True}, r"also set dataset\.standardise=false"),
        (
            {"bounds": [255, 0]},
            r"bounds: must be a smaller and a larger number, e\.g\. \[0, 255\], not \[255, 0\]",
        ),
        (
            {"bounds": [0, 200]},
            r"mine\.csv, line 2: b is 255, outside dataset\.bounds=\[0, 200\]",
        ),
        (
            {"image_shape": [8, 8]},
            r"dataset\.image_shape=\[8, 8\]: has 64 pixels, but .*mine\.csv has 4 inputs",
        ),
        ({"image_shape": [4]}, r"image_shape: must be \[height, width\]"),
    ],
)
def test_bounds_and_shapes_that_do_not_fit_are_refused(load_table, keys, message):
    with pytest.raises(ValueError, match=message):
        load_table(PIXELS, labels="classes", **{"standardise": False} | keys)


def test_sizes_are_in_the_units_of_raw_columns(load_table):
    problem = load_table(PIXELS, labels="classes", standardise=False, bounds=[0, 255])
    space = input_space(problem)
    space.check_sizes([0, 8, 16], "linf", problem.name)
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker\.eps: 300 .*\[0, 255\], .* e\.g\. 8 for 8 of 255",
    ):
        space.check_sizes([0, 300], "linf", problem.name)
    with pytest.warns(
        QuestionableConfigWarning,
        match=r"attacker\.eps: at most 0\.0314, .* e\.g\. 8 for 8 of 255",
    ):
        space.check_sizes([0, 8 / 255], "linf", problem.name)
