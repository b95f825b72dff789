"""Densities compared with literal formulas and torch.distributions; gradients, priors and
predictions."""

import pytest
import torch
from scipy import stats
from support.runs.configured import F64, build_model, generator
from support.small.small_problems import classes
from torch import distributions as d
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError


def build(data, **options):
    return build_model(
        "logistic_regression", data, **{"prior_scale": 1.5, "intercept_scale": 4.0} | options
    )


def thetas(model, n=4, seed=1):
    return model.sample_prior(n, generator(seed))


@pytest.mark.parametrize("intercept_scale", [4.0, None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_likelihood_equals_its_formula(n_classes, intercept_scale):
    data = classes(n=9, n_inputs=3, n_classes=n_classes)
    model = build(data, intercept_scale=intercept_scale)
    theta = thetas(model)
    per_class = 3 + (intercept_scale is not None)
    assert model.dim == len(model.names) == per_class * (1 if n_classes == 2 else n_classes)
    x = data.train.x
    X = x if intercept_scale is None else torch.cat([torch.ones(9, 1, dtype=F64), x], 1)
    f = X @ theta.unflatten(1, (-1, per_class)).mT  # [K, B, C], or only of class 1
    odds = torch.cat([torch.ones_like(f), f.exp()], 2) if n_classes == 2 else f.exp()
    p = odds / odds.sum(2, keepdim=True)
    assert_close(model.predictive(theta, x).logits.softmax(-1)[:, :, 0], p)
    expected = p[:, torch.arange(9), data.train.y[:, 0]].log()
    assert_close(model.log_likelihood(theta, data.train), expected)


@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_prior_is_normalised_and_its_draws_follow_it(prior, n_classes):
    model = build(classes(n_classes=n_classes), prior=prior)
    theta = thetas(model)
    family = d.Normal if prior == "gaussian" else d.Laplace
    expected = torch.zeros(4, dtype=F64)
    for j, name in enumerate(model.names):
        law = d.Normal(0.0, 4.0) if name.startswith("intercept") else family(0.0, 1.5)
        expected += law.log_prob(theta[:, j])
    assert_close(model.log_prior(theta), expected)
    many = thetas(model, 20_000)
    slope = stats.norm(scale=1.5) if prior == "gaussian" else stats.laplace(scale=1.5)
    for j, name in enumerate(model.names):
        law = stats.norm(scale=4.0) if name.startswith("intercept") else slope
        assert stats.kstest(many[:, j].numpy(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_labels_count_for_nothing(n_classes):
    data = classes(n=10, n_classes=n_classes)
    mask = torch.arange(10)[:, None] % 3 > 0
    whole = data.train
    data.train = type(whole)(whole.x, torch.where(mask, whole.y, -1), mask, 1.0)
    model = build(data)
    theta = thetas(model)
    value = model.log_likelihood(theta, data.train)
    assert torch.equal(value[:, ~mask[:, 0]], torch.zeros(4, 4, dtype=F64))
    assert_close(
        value[:, mask[:, 0]],
        build(classes(n=10, n_classes=n_classes)).log_likelihood(theta, whole)[:, mask[:, 0]],
    )


def test_extreme_inputs_do_not_overflow():
    data = classes(n=5, n_classes=2)
    model = build(data)
    theta = torch.full((1, model.dim), 1e5, dtype=F64).requires_grad_()
    value = model.log_likelihood(theta, data.train)
    (slope,) = grad(value.sum(), theta)
    assert torch.isfinite(value).all()
    assert torch.isfinite(slope).all()


def test_several_tasks_are_refused():
    with pytest.raises(ConfigMismatchError, match="tasks; use igp or mlp"):
        build(classes(n_tasks=2))
