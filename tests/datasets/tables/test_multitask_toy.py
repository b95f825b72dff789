"""The toy of section 3.1: its equations, its split and its units."""

import math
from functools import partial

import pytest
import torch
from support.runs.configured import double, load_problem
from torch.testing import assert_close

from components.datasets.toys.multitask_toy import truth

load = partial(load_problem, "multitask_toy")


def test_functions_equal_printed_equations():
    """Boustati section 3.1, displayed equations of g, h₁, h₂, f₁, f₂, point by point."""
    for i in range(101):
        x = i / 100
        g = -math.sin(8 * math.pi * (x + 1)) / (2 * x + 1) - x**4
        h1 = math.sin(3 * x)
        h2 = 3 * x
        f1 = math.cos(g) ** 2 + h1
        f2 = math.sin(10 * x) * g**2 + h2
        assert truth(double([x]))[0].tolist() == pytest.approx([f1, f2], abs=1e-12)


def test_asymmetric_rows_carry_one_label_per_task():
    problem = load(n_train=30)
    assert problem.train.x.shape == (60, 1)
    assert problem.train.mask.sum(1).tolist() == [1] * 60
    assert problem.train.mask.sum(0).tolist() == [30, 30]
    assert problem.train.x.unique().numel() == 60
    assert (problem.train.y[~problem.train.mask] == 0).all()


def test_symmetric_rows_carry_both_labels():
    problem = load(n_train=30, asymmetric=False)
    assert problem.train.y.shape == (30, 2)
    assert problem.train.mask.all()


@pytest.mark.parametrize("asymmetric", [True, False])
def test_labels_are_standardised_by_training_and_invertible(asymmetric):
    problem = load(noise=0.0, asymmetric=asymmetric)
    back = problem.y_mean + problem.y_std * problem.train.y
    expected = truth(problem.train.x[:, 0])
    mask = problem.train.mask
    assert_close(back[mask], expected[mask])
    for t in range(2):
        labels = problem.train.y[mask[:, t], t]
        assert labels.mean() == pytest.approx(0, abs=1e-12)
        assert_close(float(labels.std(correction=0)), 1.0)
    assert_close(problem.y_mean + problem.y_std * problem.test.y, truth(problem.test.x[:, 0]))


def test_noise_has_its_standard_deviation():
    problem = load(n_train=20_000, noise=0.3)
    residual = problem.y_mean + problem.y_std * problem.train.y - truth(problem.train.x[:, 0])
    deviation = residual[problem.train.mask].std()
    # 4 standard errors
    assert float(deviation) == pytest.approx(0.3, abs=4 * 0.3 / math.sqrt(2 * 40_000))


def test_noisy_test_labels_scatter_around_the_functions():
    quiet = load(noise=0.2, n_test=2_000)
    noisy = load(noise=0.2, n_test=2_000, noisy_test=True)
    difference = (noisy.test.y - quiet.test.y) * quiet.y_std
    assert difference.std() == pytest.approx(0.2, abs=4 * 0.2 / math.sqrt(2 * 4_000))
    assert torch.equal(noisy.train.y, quiet.train.y)


def test_single_label_per_task_causes_no_division_by_zero():
    problem = load(n_train=1)
    assert problem.train.y.isfinite().all()
    assert problem.test.y.isfinite().all()
    assert problem.y_std.tolist() == [1, 1]
