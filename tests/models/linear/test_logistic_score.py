"""The closed form of logistic regression's log joint and gradient equals automatic
differentiation."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import generator, normal
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.inference.log_joint import log_joint, log_joint_gradient, value_and_gradient
from components.models.linear.logistic_regression import LogisticRegressionModule
from components.problems.supervised import Supervised


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
@pytest.mark.parametrize("intercept_scale", [None, 3.0])
@pytest.mark.parametrize("complete", [True, False])
def test_score_is_the_derivative_of_the_log_likelihood(classes, prior, intercept_scale, complete):
    g = generator(0)
    x = normal(g, 20, 3)
    y = torch.randint(classes, (20, 1), generator=g)
    mask = torch.ones(20, 1, dtype=torch.bool) if complete else torch.rand(20, 1, generator=g) < 0.7
    train = Batch(x, y, mask, 1.0)
    target = "binary" if classes == 2 else "classes"
    problem = Supervised("test", target, train, train, None, n_classes=classes, task_names=["y"])
    model = LogisticRegressionModule(problem, prior, 0.7, intercept_scale)
    part = Batch(x[3:9], y[3:9], mask[3:9], 20 / 6)
    for batch in (train, replace(train, scale=2.5), part):
        theta = model.sample_prior(5, g).requires_grad_()
        literal = log_joint(model, theta, batch)
        (slope,) = grad(literal.sum(), theta)
        value, gradient = value_and_gradient(model, theta, batch)
        assert_close(value, literal.detach())
        assert_close(gradient, slope)
        assert_close(log_joint_gradient(model, theta, batch), slope)
        assert not value.requires_grad
