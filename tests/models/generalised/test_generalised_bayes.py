"""Generalised Bayes: losses compared with quadrature and sums, (2.91) with (2.92) on a grid, and
the rate with moments by hand and by coverage."""

import math

import pytest
import torch
from scipy import integrate, stats
from support.runs.configured import F64, build_model, double, generator, normal
from support.small.small_problems import classes, component, real
from torch.testing import assert_close

from components.contracts.predictive import Categorical, GaussianMixture
from components.errors import ConfigMismatchError
from components.models.generalised.calibration import (
    curvature_adjustment,
    information,
    information_rate,
    magnitude_rate,
    minimise,
)
from components.models.generalised.losses import SupervisedLoss


def build(data, base="linear_regression", base_keys=None, **keys):
    part = component("model", base, **(base_keys or {}))
    return build_model("generalised_bayes", data, base=part, **keys)


def thetas(model, n=3):
    return model.sample_prior(n, generator(1))


def literal_gaussian(loss, y, mu, sd):
    g = stats.norm(mu, sd).pdf
    r = abs(y - mu) / sd
    if loss == "huber":
        rho = r**2 / 2 if r <= 0.8 else 0.8 * r - 0.8**2 / 2
        return -rho - math.log(sd * math.sqrt(2 * math.pi))
    if loss == "absolute":
        return stats.laplace.logpdf(y, mu, sd)
    total = integrate.quad(lambda v: g(v) ** 1.3, mu - 12 * sd, mu + 12 * sd)[0]
    if loss == "beta":
        return g(y) ** 0.3 / 0.3 - total / 1.3 - 1 / 0.3 + 1 / 1.3
    return (g(y) ** 0.3 / total ** (0.3 / 1.3) - 1) / 0.3


@pytest.mark.parametrize("loss", ["beta", "gamma", "huber", "absolute"])
def test_losses_of_real_labels_equal_formulas(loss):
    rule = SupervisedLoss(loss, 0.8 if loss == "huber" else 0.3)
    for y, mu, v in [(0.3, 0.0, 0.5), (4.0, 1.0, 2.0), (-1.0, 0.0, 1.0)]:
        law = GaussianMixture(torch.full((1, 1, 1), mu, dtype=F64), torch.tensor([[[v]]]).to(F64))
        value = rule.potential(law, double([[y]]))
        assert float(value) == pytest.approx(literal_gaussian(loss, y, mu, v**0.5), abs=1e-8)


def test_losses_of_classes_equal_formulas():
    f = double([0.2, -1.0, 1.5])
    law = Categorical(f.view(1, 1, 1, 3))
    p = f.softmax(0).tolist()
    for c in range(3):
        y = torch.tensor([[c]])
        others = max(float(f[k]) for k in range(3) if k != c)
        total = sum(q**1.3 for q in p)
        expected = {
            "hinge": -max(0.0, 1 - float(f[c]) + others),
            "absolute": -sum(abs((k == c) - p[k]) for k in range(3)),
            "beta": p[c] ** 0.3 / 0.3 - total / 1.3 - 1 / 0.3 + 1 / 1.3,
            "gamma": (p[c] ** 0.3 / total ** (0.3 / 1.3) - 1) / 0.3,
        }
        for loss, value in expected.items():
            assert_close(float(SupervisedLoss(loss, 0.3).potential(law, y)), value)


@pytest.mark.parametrize("base", ["linear_regression", "logistic_regression", "bnn"])
@pytest.mark.parametrize(
    "keys", [{"loss": "likelihood"}, {"beta": 1e-7}, {"loss": "gamma", "gamma": 0.0}]
)
def test_beta_loss_tends_to_the_bayes_loss(base, keys):
    data = classes(n=8) if base == "logistic_regression" else real(n=8, n_tasks=1, missing=0.3)
    model = build(data, base, **{"rate": 1.0, **keys})
    theta = thetas(model)
    expected = build_model(base, data).log_likelihood(theta, data.train)
    assert_close(model.log_likelihood(theta, data.train), expected, atol=1e-4, rtol=1e-4)


def test_generalised_posterior_minimises_2_91_on_a_grid():
    """p ∝ prior exp(−ℓ) minimises ∫ ℓ dν + KL(ν ‖ prior), with minimum −log Z."""
    data = real(n=6, n_inputs=1, n_tasks=1, missing=0.0)
    model = build(data, base_keys={"intercept_scale": None, "noise": 0.5}, rate=0.7)
    grid = torch.linspace(-9, 9, 4001, dtype=F64)[:, None]
    prior = model.log_prior(grid).softmax(0)
    loss = -model.log_likelihood(grid, data.train).sum(1)
    posterior = (prior.log() - loss).softmax(0)

    def L(nu):
        return float((nu * loss).sum() + (nu * (nu / prior).log()).sum())

    Z = float((prior * (-loss).exp()).sum())
    assert L(posterior) == pytest.approx(-math.log(Z), abs=1e-10)
    for shift in (-0.3, 0.3):
        tilted = (posterior.log() + shift * grid[:, 0]).softmax(0)
        assert L(tilted) > L(posterior) + 1e-4


def test_information_of_a_linear_model_by_hand():
    data = real(n=40, n_inputs=2, n_tasks=1, missing=0.0)
    model = build(
        data,
        base_keys={"intercept_scale": None, "noise": 0.5},
        loss="likelihood",
        rate="information",
    )
    X = data.train.x.double()
    y = data.train.y[:, 0].double()
    beta = model.start[0]
    G = -(y - X @ beta)[:, None] * X / 0.5
    J = X.T @ X / 0.5 / len(X)
    V = G.T @ G / len(X)
    expected = float((J @ torch.linalg.inv(V) @ J).trace() / J.trace())
    assert_close(model.rate, expected)


def test_rate_removes_the_unit_and_curvature_sets_covariance():
    g = generator(0)
    x = normal(g, 50, 3)
    y = normal(g, 50)

    def loss(unit, theta):
        return unit * torch.log1p((y - x @ theta).square())

    theta = minimise(lambda t: loss(1.0, t).sum(), torch.zeros(3, dtype=F64))
    J, V = information(lambda t: loss(1.0, t), theta)
    J3, V3 = information(lambda t: loss(3.0, t), theta)
    assert_close(information_rate(J3, V3), information_rate(J, V) / 3)
    assert_close(magnitude_rate(J3, V3), magnitude_rate(J, V) / 3)
    assert_close(magnitude_rate(J, 4 * J), 0.25)
    C = curvature_adjustment(J, V)
    assert_close(torch.linalg.inv(C.T @ J @ C), torch.linalg.inv(J) @ V @ torch.linalg.inv(J))
    assert_close(curvature_adjustment(J, J), torch.eye(3, dtype=F64))


@pytest.mark.parametrize(
    ("rate", "least", "most"),
    [(1.0, 0.0, 0.6), ("information", 0.8, 1.0), ("magnitude", 0.8, 1.0), ("curvature", 0.8, 1.0)],
)
def test_coverage_is_restored_for_a_third_of_the_noise(rate, least, most):
    """Exact Gaussian posteriors of 25 data sets: 90 % intervals for a wrong σ, before and after."""
    inside = []
    for seed in range(25):
        data = real(n=60, n_inputs=2, n_tasks=1, missing=0.0, seed=seed)
        x = data.train.x
        noise = torch.randn(60, generator=generator(seed), dtype=x.dtype)
        data.train.y[:, 0] = x.sum(1) + 3 * noise
        model = build(
            data,
            base_keys={"intercept_scale": None, "noise": 1.0, "prior_scale": 100.0},
            loss="likelihood",
            rate=rate,
        )
        centre = model.start[0]
        precision = model.rate * (x.T @ x)
        if model.adjustment is not None:
            C = model.adjustment[1]
            precision = C.T @ precision @ C
        sd = torch.linalg.inv(precision).diagonal().sqrt()
        inside.append(((centre - 1).abs() < 1.645 * sd).double())
    assert least <= torch.cat(inside).mean() <= most


def test_curvature_changes_the_loss_and_not_the_parameters():
    data = real(n=30, n_inputs=2, n_tasks=1, missing=0.0)
    model = build(data, rate="curvature")
    centre, C = model.adjustment
    theta = centre + torch.tensor([[0.1, -0.2, 0.3, 0.1]], dtype=centre.dtype)
    plain = build(data, rate=1.0)
    expected = plain.log_likelihood(centre + (theta - centre) @ C.T, data.train)
    assert_close(model.log_likelihood(theta, data.train), expected)
    assert_close(model.log_prior(theta), plain.log_prior(theta))


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
def test_smoothed_kinks_tend_to_the_loss(loss):
    law = (
        GaussianMixture(torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
        if loss == "absolute"
        else Categorical(torch.tensor([0.9, 0.0]).view(1, 1, 1, 2))
    )
    rule = SupervisedLoss(loss, 0.0)
    y = torch.zeros(1, 1, dtype=torch.long)
    errors = [float(rule.potential(law, y, w) - rule.potential(law, y)) for w in (0.4, 0.2, 0.05)]
    assert abs(errors[0]) > abs(errors[1]) > abs(errors[2])
    assert abs(errors[2]) < 0.03


def test_chains_start_around_the_minimum():
    data = real(n=40, n_inputs=2, n_tasks=1, missing=0.0)
    model = build(data)
    starts = model.sample_start(400, generator(0))
    assert_close(starts.mean(0), model.start[0], atol=0.2, rtol=0)
    assert model.log_likelihood(starts, data.train).sum(1).min() > -1e4


@pytest.mark.parametrize(
    ("loss", "data", "base"),
    [
        ("hinge", real(n=9, n_tasks=1), "linear_regression"),
        ("huber", classes(n=9), "logistic_regression"),
    ],
)
def test_losses_of_unsupported_labels_are_refused(loss, data, base):
    with pytest.raises(ConfigMismatchError, match=f"{loss}: .*; set model.loss=beta"):
        build(data, base, loss=loss)


def test_base_without_a_log_joint_is_refused():
    with pytest.raises(ValueError, match=r"lacks a log joint .*; use linear_regression"):
        component("model", "generalised_bayes", base=component("model", "igp"))
