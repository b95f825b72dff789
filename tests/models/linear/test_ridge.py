"""Ridge regression by the normal equations, as penalised least squares, as a Bayes rule, and
compared with scikit-learn."""

import pytest
import torch
from sklearn.linear_model import Ridge as Peer
from sklearn.linear_model import RidgeCV
from support.runs.configured import F64, build_model, double, generator, normal
from support.small.small_problems import component, real, train
from support.targets.exact_moments import regression_moments
from torch.testing import assert_close

from components.errors import NumericalError
from components.models.linear.ridge import (
    effective_parameters,
    generalised_cross_validation,
    ridge_path,
)


def problem(n=25):
    data = real(n=n, n_tasks=1, missing=0.0)
    data.train.y.add_(2.0)
    return data


def fit(data, **options):
    module = build_model("ridge", data, **options)
    return module, module.fit(data.train, 0)


@pytest.mark.parametrize("intercept", [True, False])
def test_estimate_equals_scikit_learn(intercept):
    data = problem()
    module, coefficients = fit(data, penalty=0.8, intercept=intercept)
    peer = Peer(alpha=0.8, fit_intercept=intercept).fit(
        data.train.x.numpy(), data.train.y[:, 0].numpy()
    )
    expected = torch.from_numpy(peer.coef_)
    assert_close(coefficients["beta"][int(intercept) :], expected)
    if intercept:
        assert_close(float(coefficients["beta"][0]), peer.intercept_)
    mean = module.predict_fitted(coefficients, data.test.x).mean[:, 0]
    assert_close(mean, torch.from_numpy(peer.predict(data.test.x.numpy())))


def test_ridge_is_the_bayes_rule_of_linear_regression():
    """The posterior mean under β ~ N(0, σ²/λ) for all σ²; the predictive variances are equal
    too."""
    data = problem()
    module, coefficients = fit(data, penalty=0.8, intercept=False)
    for noise in (0.2, 3.0):
        bayes = build_model(
            "linear_regression", data, noise=noise, prior_scale=0.8**-0.5, intercept_scale=None
        )
        mean, second = regression_moments(bayes, data.train)
        assert_close(coefficients["beta"], mean)
        assert_close(noise * coefficients["covariance"].diagonal(), second - mean**2)
    # The predictive is N(x β̂, σ̂²(1 + xᵀ(XᵀX + λI)⁻¹x)) with σ̂² = RSS/(N − df).
    X = data.train.x
    y = data.train.y[:, 0]
    hat = X @ torch.linalg.inv(X.T @ X + 0.8 * torch.eye(3, dtype=F64)) @ X.T
    assert_close(effective_parameters(X, torch.full((3,), 0.8, dtype=F64)), float(hat.trace()))
    noise = (y - hat @ y).square().sum() / (len(y) - hat.trace())
    assert_close(coefficients["noise"], noise)
    x = data.test.x[5]
    expected = noise * (1 + x @ torch.linalg.inv(X.T @ X + 0.8 * torch.eye(3, dtype=F64)) @ x)
    assert_close(module.predict_fitted(coefficients, data.test.x).variance[5, 0], expected)


def test_cross_validation_equals_leaving_one_out():
    data = problem()
    X = data.train.x
    y = data.train.y[:, 0]
    penalty = torch.full((3,), 2.0, dtype=F64)
    hat = X @ torch.linalg.inv(X.T @ X + 2.0 * torch.eye(3, dtype=F64)) @ X.T
    literal = (
        len(y) * ((y - hat @ y) ** 2).sum() / (torch.eye(len(y), dtype=F64) - hat).trace() ** 2
    )
    assert_close(generalised_cross_validation(X, y, penalty), float(literal))
    # The choice of gcv predicts left-out rows about as well as the best of scikit-learn's
    # leave-one-out.
    noisy = problem(n=40)
    noisy.train.y.add_(2 * normal(generator(3), 40, 1))
    _, coefficients = fit(noisy, penalty="gcv")
    X = noisy.train.x.numpy()
    y = noisy.train.y[:, 0].numpy()
    grid = RidgeCV(
        alphas=[float(coefficients["penalty"]), *(10.0 ** torch.arange(-4, 5)).tolist()],
        store_cv_results=True,
    )
    errors = grid.fit(X, y).cv_results_.mean(0)
    assert errors[0] < 1.02 * errors.min()


def test_path_runs_from_least_squares_to_zero():
    data = problem()
    X = torch.cat([torch.ones(25, 1, dtype=F64), data.train.x], 1)
    y = data.train.y[:, 0]
    path = ridge_path(X, y, torch.tensor([1e-10, 1.0, 1e10]), free=1)
    assert_close(path[0], torch.linalg.lstsq(X, y[:, None]).solution[:, 0])
    assert_close(path[2], double([float(y.mean()), 0, 0, 0]), atol=1e-6, rtol=0)
    assert path[1, 1:].norm() < path[0, 1:].norm()
    with pytest.raises(NumericalError, match=r"raise model\.penalty"):
        ridge_path(torch.ones(5, 2, dtype=F64), y[:5], torch.zeros(1))


def test_ridge_runs_with_fewer_rows_than_inputs():
    data = problem(n=3)
    state, rng = train(component("inference", "fit"), component("model", "ridge"), data, 1)
    scores = data.score(component("inference", "fit").posterior(state), rng)
    assert scores["nlpp"] < 10
