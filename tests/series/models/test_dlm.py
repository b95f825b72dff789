"""Dynamic linear models compared with the dense Gaussian of the complete series."""

import math

import pytest
import torch
from scipy.stats import norm
from support.runs.configured import F64, component, double, draw_normal, generator, normal
from support.series.dense_series import dense

from components.contracts.sequences import Series
from components.errors import ConfigMismatchError
from components.series.models import dlm
from components.series.models.dlm import system
from components.series.sequence import Sequence
from runner.execution.rng import Streams

KINDS = [
    ("linear", 12),
    ("linear", None),
    ("level", 4),
    ("autoregressive", None),
    ("autoregressive", 3),
]
T = 30


def problem(y):
    return Sequence("drawn", None, y.view(1, -1, 1), None, ["x"])


def build(trend, period, y=None, **keys):
    y = series().y[0] if y is None else y
    return component("model", "dlm", trend=trend, period=period, **keys).build(
        problem(y), Streams(0)
    )


def series(*missing):
    g = generator(3)
    y = normal(g, T).cumsum(0)
    y[list(missing)] = math.nan
    return Series(y.view(1, -1, 1))


def exact(model, theta, data, horizon=0):
    """log p(x_seen) and the conditional moments of the next ``horizon`` values, by conditioning the
    dense Gaussian."""
    r, q = model._variances(theta.unsqueeze(0))
    joint = dense(model.system, q[0], r[0], T + horizon)
    x = data.y[0, :, 0]
    is_present = torch.cat([~x.isnan(), torch.zeros(horizon, dtype=torch.bool)])
    ahead = torch.arange(T + horizon) >= T
    C = joint.covariance_matrix
    m = joint.loc
    marginal = torch.distributions.MultivariateNormal(m[is_present], C[is_present][:, is_present])
    off = torch.linalg.solve(C[is_present][:, is_present], C[is_present][:, ahead]).T
    mean = m[ahead] + off @ (x[~x.isnan()] - m[is_present])
    variance = (C[ahead][:, ahead] - off @ C[is_present][:, ahead]).diagonal()
    return marginal.log_prob(x[~x.isnan()]), mean, variance


@pytest.mark.parametrize("missing", [(), (0,), (4, 5, 29)])
@pytest.mark.parametrize(("trend", "period"), KINDS)
def test_likelihood_and_forecast_equal_the_dense_gaussian(trend, period, missing):
    model = build(trend, period)
    data = series(*missing)
    theta = model.medians + 0.7 * draw_normal(3, model.dim)
    log_lik = model.log_likelihood(theta, data)
    by_filter = model._filter(theta, data)[0]
    ahead = model.forecast(theta, data, 15)
    assert log_lik.shape == (3, 1)
    assert ahead.mu.shape == (3, 15, 1)
    moments = zip(*(exact(model, t, data, 15) for t in theta), strict=True)
    value, mean, variance = (torch.stack(rows) for rows in moments)
    assert torch.allclose(log_lik[:, 0], value, rtol=1e-8)
    assert torch.allclose(by_filter, value, rtol=1e-8)
    assert torch.allclose(ahead.mu[..., 0], mean, rtol=1e-6, atol=1e-7)
    assert torch.allclose(ahead.v[..., 0], variance, rtol=1e-6)


def test_season_has_the_printed_order():
    """2.B.1: ones below the diagonal and in the upper right corner; its twelfth power is the
    identity."""
    G = system("linear", 12, 1.0).G[2:, 2:]
    printed = torch.diag(torch.ones(11, dtype=F64), -1)
    printed[0, 11] = 1
    assert torch.equal(G, printed)
    assert torch.equal(torch.linalg.matrix_power(G, 12), torch.eye(12, dtype=F64))


def test_trend_is_level_plus_slope():
    made = system("linear", 12, 1.0)
    assert made.G.shape == (14, 14)
    assert made.G[:2, :2].tolist() == [[1, 1], [0, 1]]
    assert made.F.tolist() == [1, 0, 1] + [0] * 11


def test_known_first_state_gives_its_moments():
    """s_0 = 0 and z_0 = 0, so that x_1 of the autoregression is N(3 · 1 + ½, 9 σ²_tr + σ²_em)."""
    model = build("autoregressive", None, double([2.0]), initial_sd=0.0)
    theta = double([[0.7, 0.4]]).log()
    exact = norm.logpdf(2.0, 3.5, math.sqrt(9 * 0.4**2 + 0.7**2))
    log_lik = model.log_likelihood(theta, Series(double([[[2.0]]])))
    assert float(log_lik) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(("trend", "period"), [("linear", 12), ("autoregressive", None)])
def test_gradient_equals_finite_differences(trend, period):
    model = build(trend, period)
    data = series(2, 3)
    theta = model.sample_prior(2, generator(1)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda t: model.log_likelihood(t, data) + model.log_prior(t)[:, None], theta
    )


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_and_filter_agree_over_the_prior(kind):
    """Values and gradients at draws of a prior with variances that differ by up to 15 orders of
    magnitude."""
    model = build(*kind)
    data = series(3, 4)
    theta = model.sample_prior(60, generator(4)).requires_grad_()
    log_lik = model.log_likelihood(theta, data)[:, 0]
    exact = model._filter(theta, data)[0]
    assert torch.allclose(log_lik, exact, rtol=1e-8)
    slopes = [torch.autograd.grad(value.sum(), theta)[0] for value in (log_lik, exact)]
    assert torch.allclose(*slopes, rtol=1e-5, atol=1e-6)


def test_long_series_use_the_filter(monkeypatch):
    model = build("linear", 4)
    data = series()
    theta = model.sample_prior(2, generator(1))
    expected = model.log_likelihood(theta, data)
    monkeypatch.setattr(dlm, "LONGEST", T - 1)
    model._covariances.clear()
    log_lik = model.log_likelihood(theta, data)
    assert not model._covariances
    assert torch.allclose(log_lik, expected, rtol=1e-8)
    assert not torch.equal(log_lik, expected)


def test_second_derivatives_equal_finite_differences():
    """Refinement is differentiated through these derivatives."""
    model = build("level", 3)
    data = series(5)
    theta = model.medians.unsqueeze(0).clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda t: model.log_likelihood(t, data), theta)


def test_float32_is_as_accurate_as_its_parameters():
    model = build("linear", 12)
    data = series()
    single = component("model", "dlm").build(problem(data.y[0].float()), Streams(0))
    theta = model.medians.unsqueeze(0)
    log_lik = single.log_likelihood(theta.float(), Series(data.y.float()))
    assert log_lik.dtype == torch.float32
    assert float(log_lik) == pytest.approx(float(model.log_likelihood(theta, data)), rel=1e-5)


def test_prior_has_the_jacobian():
    """log σ ~ N(log m, s²) is the density of θ = log σ itself."""
    model = build("linear", 12)
    theta = model.sample_prior(5, generator(2))
    exact = torch.distributions.Normal(math.log(0.1), 2.0).log_prob(theta).sum(1)
    assert torch.allclose(model.log_prior(theta), exact)
    assert torch.allclose(model.constrain(theta), theta.exp())


def test_chains_start_at_medians():
    model = build("linear", 12, start="median")
    start = model.sample_start(3, generator(0))
    assert torch.allclose(start, torch.full((3, 4), math.log(0.1), dtype=F64))
    assert model.names == ["observation_sd", "level_sd", "slope_sd", "seasonal_sd"]


def test_series_without_observations_has_no_likelihood():
    model = build("linear", 12)
    data = Series(torch.full((1, 4, 1), math.nan, dtype=F64))
    assert model.log_likelihood(model.sample_prior(2, generator(0)), data).tolist() == [[0], [0]]


@pytest.mark.parametrize("shape", [(2, 5, 1), (1, 5, 2)])
def test_several_series_are_refused(shape):
    odd = Sequence("odd", None, torch.zeros(shape), None, ["x"])
    with pytest.raises(ConfigMismatchError, match="only one univariate series"):
        component("model", "dlm").build(odd, Streams(0))
