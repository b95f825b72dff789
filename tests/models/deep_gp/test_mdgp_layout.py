"""Padded rows of each task, and the likelihoods of the deep GPs compared with quadrature and closed
forms."""

import math

import pytest
import torch
from support.runs.configured import F64, generator, normal
from torch.autograd import grad
from torch.testing import assert_close

from components.models.deep_gp.layout import Layout
from components.models.deep_gp.likelihoods import (
    NOISE_FLOOR,
    BernoulliLabels,
    GaussianLabels,
    SoftmaxLabels,
)

MASK = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1]], dtype=torch.bool)


def test_layout_pads_to_the_longest_task():
    layout = Layout.of(MASK, F64)
    assert layout.n_rows == 3
    assert layout.rows[0].tolist() == [0, 2, 4]
    assert layout.rows[2].tolist() == [0, 1, 4]
    assert layout.weight.tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    y = torch.arange(15.0, dtype=F64).view(5, 3)
    y[~MASK] = torch.nan
    assert layout.labels(y).tolist() == [[0, 6, 12], [0, 0, 0], [2, 5, 14]]


def test_complete_labels_need_no_layout_or_padding():
    layout = Layout.of(torch.ones(4, 2, dtype=torch.bool), F64)
    assert layout.rows is None
    g = torch.randn(2, 4, 3)
    assert torch.equal(layout.gather(g), g.unsqueeze(1).expand(2, 2, 4, 3))
    assert Layout.of(torch.zeros(4, 2, dtype=torch.bool), F64).weight.sum() == 0


@pytest.mark.parametrize("seed", range(3))
def test_gather_and_its_gradient_are_exact(seed):
    g = generator(seed)
    layout = Layout.of(torch.rand(7, 4, generator=g) < 0.5, F64)
    features = normal(g, 2, 7, 3).requires_grad_()
    gathered = layout.gather(features)
    reference = features[:, layout.rows]
    weight = layout.weight[None, :, :, None]
    assert_close(gathered * weight, reference * weight)
    cotangent = normal(g, *gathered.shape) * weight
    assert_close(grad(gathered, features, cotangent), grad(reference, features, cotangent))


def moments(outputs=1):
    g = generator(0)
    mean = normal(g, 1, 2, 5, outputs)
    return mean, 0.1 + torch.rand(1, 2, 5, outputs, generator=g, dtype=F64)


def quadrature(log_p, mean, variance, half_width=12.0, n=20001):
    """∫ log p(y|f) N(f|μ, v) df on a fine grid."""
    z = torch.linspace(-half_width, half_width, n, dtype=F64)
    weight = torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    return (log_p(mean + variance.sqrt() * z) * weight).sum(-1)


def test_gaussian_expectation_and_predictive_match_quadrature():
    like = torch.zeros((), dtype=F64)
    likelihood = GaussianLabels(2, 0.3, like)
    assert_close(likelihood.noise_variance, torch.full((2,), 0.3, dtype=F64))
    mean, variance = moments()
    y = normal(generator(1), 2, 5)
    expected = quadrature(
        lambda f: -0.5 * (math.log(2 * math.pi * 0.3) + (y[None, ..., None] - f) ** 2 / 0.3),
        mean,
        variance,
    )
    assert_close(likelihood.expected_log_prob(y, mean, variance, None), expected)
    predictive = likelihood.predictive(mean, variance, None)
    moments_of_y = mean[0, :, :, 0].T, variance[0, :, :, 0].T + 0.3
    assert_close((predictive.mu[0], predictive.v[0]), moments_of_y)


@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_published_noise_has_a_floor(dtype):
    likelihood = GaussianLabels(2, 1e-6, torch.zeros((), dtype=dtype))
    assert (likelihood.noise_variance >= NOISE_FLOOR).all()
    assert (likelihood.noise_variance <= 3e-6).all()
    likelihood.raw_noise.data.fill_(-1e4)
    assert_close(likelihood.noise_variance, torch.full((2,), NOISE_FLOOR, dtype=dtype))


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_bernoulli_expectation_matches_quadrature(link):
    likelihood = BernoulliLabels(link, 40, torch.zeros((), dtype=F64))
    mean, variance = moments()
    y = torch.tensor([[0, 1, 0, 1, 1], [1, 1, 0, 0, 1]])
    sign = (2.0 * y - 1)[None, ..., None]
    log_p = torch.special.log_ndtr if link == "probit" else torch.nn.functional.logsigmoid
    expected = quadrature(lambda f: log_p(sign * f), mean, variance)
    assert_close(likelihood.expected_log_prob(y, mean, variance, None), expected)


def test_bernoulli_predictive_is_the_probit_closed_form():
    likelihood = BernoulliLabels("probit", 40, torch.zeros((), dtype=F64))
    mean, variance = moments()
    p = torch.special.ndtr(mean / (1 + variance).sqrt())[0, :, :, 0].T
    assert_close(likelihood.predictive(mean, variance, None).probs, torch.stack([1 - p, p], -1))


def test_softmax_expectation_is_unbiased():
    likelihood = SoftmaxLabels(3)
    mean, variance = moments(3)
    g = generator(4)
    y = torch.randint(3, (2, 5), generator=g)
    noise = normal(g, 20000, 2, 5, 3)
    estimates = likelihood.expected_log_prob(y, mean, variance, noise)  # [S, T, n]
    f = mean + variance.sqrt() * normal(g, 20000, 2, 5, 3)
    reference = f.log_softmax(-1).gather(-1, y.expand(20000, 2, 5)[..., None])[..., 0]
    se = (estimates.var(0) / 20000 + reference.var(0) / 20000).sqrt()
    z = (estimates.mean(0) - reference.mean(0)) / se
    assert z.abs().max() < 4
    assert likelihood.predictive(mean, variance, noise).logits.shape == (20000, 5, 2, 3)
