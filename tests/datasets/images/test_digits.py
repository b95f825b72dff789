"""scikit-learn's digits as a supervised problem."""

from functools import partial

import torch
from sklearn.datasets import load_digits
from support.runs.configured import load_problem

load = partial(load_problem, "digits")


def test_sizes_bounds_and_shape():
    problem = load(n_test=500)
    assert problem.train.x.shape == (1297, 64)
    assert problem.test.x.shape == (500, 64)
    assert (problem.bounds, problem.image_shape, problem.n_classes, problem.n_tasks) == (
        (0.0, 1.0),
        (8, 8),
        10,
        1,
    )
    assert (float(problem.train.x.min()), float(problem.train.x.max())) == (0.0, 1.0)
    assert problem.train.y.unique().tolist() == list(range(10))
    assert problem.train.mask.all()
    assert problem.test.mask.all()


def test_training_and_test_images_are_a_permutation():
    problem = load()
    data = load_digits()
    rows = torch.cat(
        [torch.cat([p.x * 16, p.y.double()], 1) for p in (problem.train, problem.test)]
    )
    everything = torch.cat(
        [torch.tensor(data.data), torch.tensor(data.target)[:, None].double()], 1
    )
    assert sorted(rows.tolist()) == sorted(everything.tolist())


def test_smaller_training_sets_are_nested():
    small = load(n_train=50)
    large = load(n_train=200)
    assert torch.equal(small.train.x, large.train.x[:50])
    assert torch.equal(small.test.x, large.test.x)
