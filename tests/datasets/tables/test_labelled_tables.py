"""titanic, airfoil and logistic_synthetic: rows, splits, standardisation and names."""

import pytest
import torch
from support.runs.configured import F64, load_problem
from support.runs.real_files import FOLDER, find_or_skip
from torch.testing import assert_close

from components.datasets.tables import airfoil
from components.datasets.tables.titanic import persons
from components.errors import (
    ConfigMismatchError,
)
from runner.execution.rng import Streams

pytestmark = pytest.mark.usefixtures("own_cache")


def test_titanic_rows_have_the_margins_of_the_table():
    """Dawson (1995): margins of the table, and survivors among women and children of each class."""
    rows = persons()
    grade, child, male, survived = rows.T
    assert rows.shape == (2201, 4)
    assert torch.bincount(grade)[1:].tolist() == [325, 285, 706, 885]
    assert [int(v.sum()) for v in (child, male, survived)] == [109, 1731, 711]
    assert [
        int(survived[(grade == c) & (male == 0) & (child == 0)].sum()) for c in (1, 2, 3, 4)
    ] == [140, 80, 76, 20]
    assert [int(((grade == c) & (child == 1) & (survived == 0)).sum()) for c in (1, 2, 3, 4)] == [
        0,
        0,
        52,
        0,
    ]
    assert survived[male == 1].sum() == 367


def test_titanic_trains_and_scores_on_all_rows_by_default():
    problem = load_problem("titanic")
    x = problem.train.x
    assert x.shape == (2201, 3)
    assert problem.test.x.equal(x)
    assert problem.train.y.dtype == torch.int64
    assert x.mean(0).abs().max() < 1e-12
    assert_close(x.std(0, correction=0), torch.ones(3, dtype=F64))
    # the standardised values that the archive of Fernández-Delgado et al. (2014) prints
    values = [[-1.87, -0.923, 0.0214, 0.965], [-0.228, 4.38], [-1.92, 0.521]]
    for column, levels in zip(x.T, values, strict=True):
        assert column.unique().tolist() == pytest.approx(levels, rel=5e-3)
    step, batch = next(iter(problem.batches("minibatch", Streams(0), 0, 1)))
    assert (step, len(batch.x), batch.scale) == (1, 10, 220.1)


def test_held_out_rows_follow_the_seed_and_scale_nothing():
    first, other = (load_problem("titanic", seed=s, n_test=201) for s in (0, 1))
    assert (len(first.train.x), len(first.test.x)) == (2000, 201)
    assert first.train.x.mean(0).abs().max() < 1e-12
    assert first.test.x.mean(0).abs().max() > 1e-3
    assert not first.test.y.equal(other.test.y)
    assert int(first.train.y.sum() + first.test.y.sum()) == 711
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset.n_test=2200: .* 1 of 2201 rows .*; lower it",
    ):
        load_problem("titanic", n_test=2200)


def test_real_rows_are_standardised():
    find_or_skip(airfoil.FILE)
    problem = load_problem("airfoil", data_dir=FOLDER)
    assert problem.name == "airfoil"
    assert problem.train.x.shape == (1503, 5)
    for values in (problem.train.x, problem.train.y):
        assert values.mean(0).abs().max() < 1e-12
        assert_close(values.std(0, correction=0), torch.ones(values.shape[1], dtype=F64))
    assert float(problem.y_std) == pytest.approx(6.897, abs=0.01)  # of the sound pressure, in dB
    # six chords, four speeds
    assert [len(column.unique()) for column in problem.train.x.T][2:4] == [6, 4]
    assert len(load_problem("airfoil", data_dir=FOLDER, n_test=150).test.x) == 150


def test_labels_follow_the_true_weights():
    problem = load_problem("logistic_synthetic", n_train=40000, n_inputs=4, weight_std=1.0)
    x = problem.train.x
    y = problem.train.y[:, 0].double()
    assert x.abs().max() <= 1
    assert torch.allclose(x.var(0), torch.full((4,), 1 / 3, dtype=F64), atol=0.01)
    p = torch.sigmoid(x @ problem.truth["weights"] + problem.truth["bias"])
    # score of the truth: mean 0
    residual = (y - p)[:, None] * torch.cat([torch.ones(len(x), 1, dtype=F64), x], 1)
    z = residual.mean(0) / (residual.std(0) / len(x) ** 0.5)
    assert z.abs().max() < 3.5


def test_weights_have_variance_25_and_the_bias_1():
    truths = [load_problem("logistic_synthetic", seed=s, n_test=1).truth for s in range(200)]
    weights = torch.cat([t["weights"] for t in truths])
    bias = torch.cat([t["bias"] for t in truths])
    assert weights.var() == pytest.approx(25, rel=0.1)
    assert bias.var() == pytest.approx(1, rel=0.35)


def test_training_rows_ignore_test_size_and_differ_by_replicate():
    first, two = (load_problem("logistic_synthetic", n_test=n) for n in (5, 50))
    assert (tuple(first.train.x.shape), first.batch_size) == ((100, 20), None)
    assert first.train.x.equal(two.train.x)
    assert first.train.y.equal(two.train.y)
    assert not first.train.x.equal(load_problem("logistic_synthetic", replicate=1).train.x)
