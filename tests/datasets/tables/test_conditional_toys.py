"""Toy regressions with label distributions that depend on the input."""

import math

import pytest
import torch
from support.runs.configured import F64, generator, load_problem
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture
from components.datasets.toys.bimodal_toy import BimodalToy
from components.datasets.toys.heteroscedastic_toy import HeteroscedasticToy
from runner.execution.rng import Streams


def test_moments_of_the_heteroscedastic_law():
    g = generator()
    x = torch.full((200_000,), 1.3, dtype=F64)
    y = HeteroscedasticToy.sample_labels(x, g)
    assert y.mean() == pytest.approx(7 * math.sin(1.3), abs=0.03)
    assert y.std() == pytest.approx(3 * abs(math.cos(0.65)), abs=0.02)


def test_branches_of_the_bimodal_law():
    g = generator()
    x = torch.full((200_000,), -0.4, dtype=F64)
    y = BimodalToy.sample_labels(x, g)
    upper = y > 2.5
    assert upper.double().mean() == pytest.approx(0.5, abs=0.01)
    assert y[upper].mean() == pytest.approx(10 * math.cos(0.4), abs=0.02)
    assert y[~upper].mean() == pytest.approx(-10 * math.sin(0.4), abs=0.02)


@pytest.mark.parametrize(("name", "reach"), [("heteroscedastic_toy", 4.0), ("bimodal_toy", 2.0)])
def test_rows_are_standardised_and_units_kept(name, reach):
    problem = load_problem(name, n_train=500, n_test=30, seed=2)
    assert problem.train.x.shape == (500, 1)
    assert problem.test.x.shape == (30, 1)
    assert problem.train.y.mean() == pytest.approx(0, abs=1e-9)
    assert_close(float(problem.train.y.std(correction=0)), 1.0)
    # of a uniform distribution of any width
    assert problem.train.x.abs().max() == pytest.approx(math.sqrt(3), rel=0.05)
    assert float(problem.y_std) > 4


class Says:
    """A posterior that always predicts the same mixture, in standardised units."""

    def __init__(self, law, problem):
        self.law = law
        self.problem = problem

    def predict(self, x, generator):
        law = self.law(x)
        return law.rescale(-self.problem.y_mean / self.problem.y_std, 1 / self.problem.y_std)


@pytest.mark.parametrize(("name", "oracle"), [("heteroscedastic_toy", 1.57), ("bimodal_toy", 2.07)])
def test_true_law_is_the_best_prediction(name, oracle):
    problem = load_problem(name, n_train=500, n_test=20_000, seed=3)
    scores = problem.score(Says(problem.law_at, problem), Streams(0))
    assert float(scores["nlpp"]) == pytest.approx(float(scores["nlpp_of_law"]), rel=1e-9)
    assert float(scores["nlpp"]) == pytest.approx(oracle, abs=0.02)


def test_prediction_shows_both_branches():
    problem = load_problem("bimodal_toy", n_train=100, n_test=400, seed=3)

    def share(law):
        return float(problem.score(Says(law, problem), Streams(0))["both_branches"])

    def one(x):
        law = problem.law_at(x)
        return GaussianMixture(law.mu[:1], law.v[:1])

    def broad(x):  # the best Gaussian
        law = problem.law_at(x)
        return GaussianMixture(law.mean[None], law.variance[None])

    def shift_second_branch(x):  # the second branch by more than 1, its mass still within 2
        law = problem.law_at(x)
        return GaussianMixture(law.mu + torch.tensor([0.0, 1.3])[:, None, None], 0.04 * law.v)

    def unequal(x):  # a mode at the second branch with a fifth of the mass
        law = problem.law_at(x)
        return GaussianMixture(law.mu[[0, 0, 0, 0, 1]], law.v[[0, 0, 0, 0, 1]])

    assert share(problem.law_at) == 1
    assert share(one) == share(broad) == share(shift_second_branch) == share(unequal) == 0
