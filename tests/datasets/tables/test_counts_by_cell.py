"""Counts in cells: the coal data, and a simulated process with a known rate."""

import torch
from support.runs.configured import load
from torch.testing import assert_close

from components.datasets.tables.counts import LENGTHSCALE


def test_coal_has_its_191_disasters():
    problem, _ = load("counts", n_test=22)
    assert (problem.n, len(problem.test.y)) == (90, 22)
    y = torch.cat([problem.train.y, problem.test.y])
    assert y.sum() == 191
    assert problem.y_std is None  # counts stay counts
    x = torch.cat([problem.train.x, problem.test.x])[:, 0]
    in_order = y[x.argsort(), 0]
    assert in_order[:6].tolist() == [4, 5, 4, 1, 0, 4]
    early = in_order[:40].mean()
    late = in_order[-40:].mean()
    assert_close(float(early), 3.125)
    assert float(late) < 1


def test_cox_process_has_its_mean_and_spread():
    """E[y] = mean, Var[y] = mean + mean² (e^{s²} − 1), over independent processes."""
    means = []
    squares = []
    for seed in range(150):
        keys = {"set": "cox", "n_cells": 12, "n_test": 0, "mean": 4.0, "spread": 0.5}
        y = load("counts", seed=seed, **keys)[0].train.y
        means.append(y.mean())
        squares.append((y - 4.0).square().mean())
    for draws, exact in ((means, 4.0), (squares, 4 + 16 * (torch.tensor(0.25).exp() - 1))):
        draws = torch.stack(draws)
        error = float(draws.std() / len(draws) ** 0.5)
        assert abs(float(draws.mean()) - float(exact)) < 4 * error
    assert 0 < LENGTHSCALE < 1


def test_figure_shows_the_true_rate():
    problem, _ = load("counts", set="cox", n_cells=30, n_test=5)
    truth = problem.figures[0].keywords["truth"]
    cells = torch.cat([problem.train.x, problem.test.x])[:, 0].sort().values
    rate = truth(cells)
    middle = truth((cells[1:] + cells[:-1]) / 2)
    assert rate.shape == (30, 1)
    assert_close(middle, (rate[1:] + rate[:-1]) / 2)
