"""The penalty of Hoerl, Kennard and Baldwin, from the normal equations."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import double, load
from support.small.small_problems import component
from support.targets.known_targets import F64
from torch.testing import assert_close

from components.inference.linear import statistical_risk


@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_data_penalty_is_independent_of_label_mean(shift):
    """λ = D σ̂²/‖β̂‖² uses only slopes: labels with a different mean get the same λ and slopes, and
    a different intercept."""
    problem, rng = load("linear_simulation", n_train=30, beta=[1.0, -0.5, 0.3], noise=2.0)
    shifted = replace(problem, train=replace(problem.train, y=problem.train.y + shift), truth={})
    keys = {"noise": "learned", "intercept_scale": 10.0}
    model = component("model", "linear_regression", **keys).build(shifted, rng)
    inference = component("inference", "ridge_path", number=3)
    posterior = inference.posterior(inference.init(model, shifted, rng))
    fit = posterior.data.fit
    assert posterior.hkb == pytest.approx(3 * float(fit.noise) / float(fit.beta[1:].square().sum()))
    penalty, plain = ridge_at(problem)
    assert posterior.hkb == pytest.approx(penalty)
    by_rule = statistical_risk.estimates(fit, torch.eye(4, dtype=F64), model.penalty, 1)
    shrunk = by_rule[statistical_risk.ESTIMATORS.index("ridge_hkb")]
    assert_close(shrunk, posterior.estimate(posterior.hkb))
    assert_close(shrunk, plain + double([shift, 0, 0, 0]))


def ridge_at(problem):
    """λ and β̂_λ from the normal equations, for unstandardised labels."""
    X = torch.cat([torch.ones(problem.n, 1, dtype=F64), problem.train.x], 1)
    y = problem.train.y[:, 0]
    beta = torch.linalg.solve(X.T @ X, X.T @ y)
    noise = float((y - X @ beta).square().sum()) / (problem.n - 4)
    penalty = 3 * noise / float(beta[1:].square().sum())
    eye = torch.diag(double([0.0, 1, 1, 1]))
    return penalty, torch.linalg.solve(X.T @ X + penalty * eye, X.T @ y)
