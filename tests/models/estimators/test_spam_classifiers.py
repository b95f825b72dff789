"""Naive Bayes and L1 logistic regression, compared with their formulas and with scikit-learn."""

import math

import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.naive_bayes import BernoulliNB
from support.runs.configured import build_model
from support.small.small_problems import classes
from support.small.small_spam import words
from torch.testing import assert_close

from components.errors import ConfigMismatchError


def test_naive_bayes_literally_equals_scikit_learn():
    problem = words()
    alpha = 0.7
    model = build_model("naive_bayes", problem, smoothing=alpha)
    fitted = model.fit(problem.train, 0)
    x = problem.train.x
    y = problem.train.y[:, 0]
    mails = problem.test.x
    n = y.bincount().double()
    of_class = torch.nn.functional.one_hot(y).double().T
    theta = (of_class @ x + alpha) / (n[:, None] + 2 * alpha)  # [2, D]
    terms = torch.where(mails[:, None] == 1, theta, 1 - theta).log()  # [B, 2, D]
    assert_close(model.log_features(fitted, mails), terms)
    joint = terms.sum(2) + ((n + alpha) / (len(y) + 2 * alpha)).log()
    probs = model.predict_fitted(fitted, mails).probs[:, 0]
    assert_close(probs, joint.softmax(1))
    peer = BernoulliNB(alpha=alpha, class_prior=fitted["log_class"].exp().numpy())
    peer.fit(x.numpy(), y.numpy())
    assert_allclose(probs, peer.predict_proba(mails.numpy()), atol=1e-12)


def test_naive_bayes_requires_binary_inputs():
    problem = classes(n_classes=2)
    with pytest.raises(ConfigMismatchError, match="must be 0 or 1"):
        build_model("naive_bayes", problem).fit(problem.train, 0)


def test_l1_logistic_regression_meets_its_optimality_conditions():
    """|∂ log-likelihood/∂β_j| ≤ 1/s, with equality and the sign of β_j where it is not zero."""
    problem = words()
    s = 0.1
    s0 = 2.0
    model = build_model("logistic_lasso", problem, prior_scale=s, intercept_scale=s0)
    fitted = model.fit(problem.train, 0)
    x = problem.train.x
    y = problem.train.y[:, 0]
    miss = y - model.predict_fitted(fitted, x).probs[:, 0, 1]
    beta = fitted["coefficients"]
    assert 0 < (beta == 0).sum() < len(beta)
    for slope, value in zip(x.T @ miss, beta, strict=True):
        bound = float(slope) * s
        assert (
            bound == pytest.approx(math.copysign(1, value), abs=2e-3)
            if value != 0
            else abs(bound) <= 1 + 2e-3
        )
    assert float(miss.sum()) * s0 == pytest.approx(math.copysign(1, fitted["intercept"]), abs=2e-2)
