"""Simulated and real data for linear regression."""

import torch
from support.runs.configured import load
from torch.testing import assert_close


def test_simulation_has_its_stated_law():
    problem, _ = load(
        "linear_simulation",
        n_train=40_000,
        n_test=10,
        beta=[1.0, -2.0, 0.5],
        correlation=0.8,
        noise=4.0,
    )
    x = problem.train.x
    y = problem.train.y[:, 0]
    expected = torch.tensor(
        [[0.8 ** abs(i - j) for j in range(3)] for i in range(3)], dtype=x.dtype
    )
    assert torch.allclose(x.T @ x / len(x), expected, atol=0.03)
    residual = y - x @ problem.truth["beta"]
    assert abs(float(residual.var()) - 4.0) < 4 * 4.0 * (2 / len(y)) ** 0.5
    assert float(problem.truth["noise"]) == 4.0
    assert problem.test.x.shape == (10, 3)


def test_diabetes_is_standardised_by_training_rows():
    problem, _ = load("diabetes", n_test=42)
    assert problem.train.x.shape == (400, 10)
    assert problem.test.y.shape == (42, 1)
    for values in (problem.train.x, problem.train.y):
        assert_close(values.mean(0), torch.zeros(values.shape[1], dtype=values.dtype))
        assert_close(values.std(0, correction=0), torch.ones(values.shape[1], dtype=values.dtype))
    assert 140 < float(problem.y_mean) < 165  # units of the published score, mean 152
    assert not problem.truth
