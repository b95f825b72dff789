"""The Bayesian network: its density compared with scipy and loops, prior draws, initial values and
gradients."""

import math

import pytest
import torch
from scipy import stats
from support.runs.configured import F64, build_model, double, generator
from support.small.small_nets import SMALL_BNN, tanh_layers
from support.small.small_problems import classes, real
from torch.distributions import Categorical, Gamma, Normal
from torch.testing import assert_close

from components.inference.chains import init_chains
from components.inference.log_joint import log_joint
from runner.execution.rng import Streams


def build(data, **options):
    return build_model("bnn", data, **SMALL_BNN | options)


def thetas(model, n=3, seed=1):
    return model.sample_prior(n, generator(seed))


@pytest.mark.parametrize("scaling", ["none", "fan_in"])
@pytest.mark.parametrize("precision", ["learned", "fixed"])
@pytest.mark.parametrize("noise", ["learned", 0.3])
def test_log_joint_equals_its_formula(scaling, precision, noise):
    data = real(n=6, n_inputs=2, missing=0.0)  # two tasks
    model = build(data, scaling=scaling, precision=precision, noise=noise)
    shapes = [(4, 2), (3, 4), (2, 3)]
    n = sum(o * i + o for o, i in shapes)
    theta = thetas(model)
    assert model.dim == theta.shape[1] == n + (precision == "learned") + 2 * (noise == "learned")
    scales = []
    for out, fan in shapes:
        scales += [0.8 / math.sqrt(fan if scaling == "fan_in" else 1)] * (out * fan) + [0.8] * out
    for row, value in zip(model.constrain(theta), log_joint(model, theta, data.train), strict=True):
        w = row[:n]
        rest = row[n:]
        expected = 0.0
        lam = double(1.0)
        gammas = double([1 / 0.3] * 2)
        if precision == "learned":
            lam = rest[0]
            expected += (
                Gamma(double(2.0), double(0.5)).log_prob(lam) + lam.log()
            )  # Jacobian of log λ
        if noise == "learned":  # u = log γ / 2.5 has the Jacobian 2.5 γ
            gammas = rest[-2:]
            density = Gamma(double(3.0), double(0.2)).log_prob(gammas)
            expected += (density + (2.5 * gammas).log()).sum()
        expected += Normal(0, double(scales) / lam.sqrt()).log_prob(w).sum()
        f = tanh_layers(w, data.train.x, shapes)
        expected += Normal(f, gammas**-0.5).log_prob(data.train.y).sum()
        assert_close(value, expected)


def test_prior_draws_follow_the_prior():
    model = build(real(n=5), precision_shape=0.7)
    parameters = model.constrain(thetas(model, 20_000))
    n = model.n_weights
    lam = parameters[:, n]
    gammas = parameters[:, n + 1 :]
    assert stats.kstest(lam.numpy(), stats.gamma(0.7, scale=2.0).cdf).pvalue > 1e-3
    for gamma in gammas.T:
        assert stats.kstest(gamma.numpy(), stats.gamma(3.0, scale=5.0).cdf).pvalue > 1e-3
    for weight in parameters[:, [0, n - 1]].T:
        unit = weight * lam.sqrt() / 0.8
        assert stats.kstest(unit.numpy(), stats.norm.cdf).pvalue > 1e-3


def test_prior_of_a_single_precision_is_normalised():
    """∫ p(log λ) d log λ = 1 with the Jacobian; without it the integral differs."""
    model = build(real(n=4), widths=[], noise=0.1)
    log_lambda = torch.linspace(-25, 8, 20_001, dtype=F64)
    theta = torch.zeros(len(log_lambda), model.dim, dtype=F64)
    theta[:, -1] = log_lambda
    # log N(0 | 0, s²/λ) of all weights
    at_zero = 0.5 * model.n_weights * (log_lambda - math.log(2 * math.pi * 0.8**2))
    density = (model.log_prior(theta) - at_zero).exp()
    assert float(torch.trapezoid(density, log_lambda)) == pytest.approx(1, abs=1e-6)
    wrong = (model.log_prior(theta) - at_zero - log_lambda).exp()
    assert abs(float(torch.trapezoid(wrong, log_lambda)) - 1) > 0.1


def test_class_labels_have_no_noise():
    data = classes(n=8, n_classes=3)
    model = build(data)
    theta = thetas(model)
    assert model.dim == model.n_weights + 1
    f = model.network.outputs(theta[:, : model.n_weights], data.train.x)
    expected = Categorical(logits=f[:, :, 0]).log_prob(data.train.y[:, 0])
    assert_close(model.log_likelihood(theta, data.train), expected)
    assert model.predictive(theta, data.test.x).logits.shape == (3, 8, 1, 3)


def test_predictive_includes_the_noise_of_each_network():
    data = real(n=8)
    model = build(data)
    theta = thetas(model)
    predictive = model.predictive(theta, data.test.x)
    assert predictive.mu.shape == (3, 8, 2)
    assert_close(predictive.v[:, 5], 1 / model.constrain(theta)[:, -2:])


@pytest.mark.parametrize("start", ["network", "prior"])
def test_chains_start_at_the_initial_points_of_the_model(start):
    data = real(n=8, n_inputs=30, n_tasks=1, missing=0.0)
    rng = Streams(0)
    model = build(data, widths=[200], start=start)
    theta = init_chains(model, data, "minibatch", 5, rng).theta
    if start == "prior":
        assert torch.equal(theta, model.sample_prior(5, Streams(0).init))
        return
    (w1, b1), (w2, b2) = model.network.layers(theta[:, : model.n_weights])
    assert torch.equal(b1, torch.zeros(5, 200, dtype=F64))
    assert torch.equal(b2, torch.zeros(5, 1, dtype=F64))
    for w, fan in ((w1, 30), (w2, 200)):
        assert w.std() == pytest.approx((fan + 1) ** -0.5, rel=0.08)
    assert torch.equal(theta[:, -1], torch.zeros(5, dtype=F64))
    # λ is where p(w | λ) is largest
    slope = theta[:, : model.n_weights].square().sum(1) * theta[:, -2].exp() / 0.8**2
    assert_close(slope, torch.full((5,), float(model.n_weights), dtype=F64))
