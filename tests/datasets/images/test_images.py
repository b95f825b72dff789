"""Images without labels: pixels, held-out images and names."""

from functools import partial

import pytest
import torch
from support.runs.configured import component, load_problem

from runner.execution.rng import Streams

load = partial(load_problem, "images", dtype=torch.float32)


@pytest.mark.parametrize(
    ("changes", "name", "shape", "rows"),
    [
        ({"binarised": "none"}, "digits", (8, 8), (1297, 500)),
        (
            {"binarised": "threshold", "n_train": 30, "n_test": 7},
            "digits-threshold",
            (8, 8),
            (30, 7),
        ),
        ({"n_train": 30}, "digits-dynamic", (8, 8), (30, 500)),
        (
            {"set": "mnist", "offline": "always", "n_test": 9},
            "digits-enlarged-dynamic",
            (28, 28),
            (1200, 9),
        ),
    ],
)
def test_names_rows_and_shapes(changes, name, shape, rows):
    problem = load(**changes)
    assert problem.name == name
    assert (problem.n, problem.test.n_rows) == rows
    assert problem.image_shape == shape
    assert problem.train.x.shape[1] == shape[0] * shape[1]
    assert problem.train.x.dtype == torch.float32
    assert len(problem.test_classes) == problem.test.n_rows
    assert problem.values == component("dataset", "images", **changes).value_kind()


def test_pixels_are_binarised_by_key():
    grey, sharp, dynamic = (load(binarised=kind) for kind in ("none", "threshold", "dynamic"))
    assert torch.equal(sharp.train.x, (grey.train.x > 0.5).float())
    assert torch.equal(sharp.test.x, (grey.test.x > 0.5).float())
    assert torch.equal(dynamic.train.x, grey.train.x), "brightness, from which each step draws"
    for x in (dynamic.test.x, next(iter(dynamic.batches("minibatch", Streams(0), 0, 1)))[1].x):
        assert set(x.unique().tolist()) == {0.0, 1.0}
    n = grey.test.x.numel()
    assert (dynamic.test.x - grey.test.x).sum().abs() < 4 * 0.5 * n**0.5
    assert (grey.values, sharp.values, dynamic.values) == ("real", "binary", "binary")


def test_smaller_training_sets_are_nested():
    problem = load(binarised="none")
    small = load(binarised="none", n_train=100)
    assert torch.equal(small.train.x, problem.train.x[:100])
    assert torch.equal(small.test.x, problem.test.x)
