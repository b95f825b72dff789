"""Displayed equations of Bardenet's chapter 1, evaluated literally in loops; estimators compared
with theorems about their risk."""

import dataclasses
import math

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator, normal
from support.targets.known_targets import z_score
from torch.distributions import Normal
from torch.testing import assert_close

from components.errors import NumericalError
from components.maths.conjugate_regression import coefficients
from components.maths.least_squares import james_stein, least_squares, ridge, ridge_risk

N = 12
D = 4
NOISE = 0.7


def regression(seed=0, rows=N):
    g = generator(seed)
    X = normal(g, rows, D) @ double([[1, 0.9, 0, 0]] + [[0, 1, 0, 0.0]] * 3)
    X = X + 0.5 * normal(g, rows, D)
    beta = double([1.0, -0.5, 0.3, 0.0])
    y = X @ beta + NOISE**0.5 * normal(g, rows)
    return X, y, beta


def literal_log_likelihood(X, y, beta, noise):
    """log Π_i N(y_i | x_iᵀθ, σ²)."""
    return float(Normal(X @ beta, noise**0.5).log_prob(y).sum())


def test_log_likelihood_is_maximal_at_the_estimate():
    X, y, _ = regression()
    fit = least_squares(X, y, NOISE)
    best = literal_log_likelihood(X, y, fit.beta, NOISE)
    assert float(fit.log_likelihood(fit.beta)) == pytest.approx(best)
    g = generator(1)
    for scale in (1e-4, 1e-2, 1.0):
        other = fit.beta + scale * normal(g, D)
        value = literal_log_likelihood(X, y, other, NOISE)
        assert value < best
        assert float(fit.log_likelihood(other)) == pytest.approx(value)
        # "∝ −‖y − Xθ‖²": differences equal differences of squares divided by 2σ²
        squares = (y - X @ other).square().sum() - (y - X @ fit.beta).square().sum()
        assert best - value == pytest.approx(float(squares) / (2 * NOISE), rel=1e-6, abs=1e-12)
    assert_close(fit.beta, torch.linalg.inv(X.T @ X) @ X.T @ y)


def test_ellipsoid_equals_the_printed_one():
    X, y, beta = regression()
    fit = least_squares(X, y, NOISE)
    error = beta - fit.beta
    assert_close(fit.distance(beta), error @ X.T @ X @ error / NOISE)


def repeat_estimate(variance, n=40_000, rows=N):
    X, _, beta = regression(rows=rows)
    e = NOISE**0.5 * draw_normal(n, rows, seed=2)
    return least_squares(X, X @ beta + e, variance), beta


def test_estimate_has_its_sampling_distribution():
    """(1.1): N(θ, σ²(XᵀX)⁻¹)."""
    fit, beta = repeat_estimate(NOISE)
    n = len(fit.beta)
    covariance = NOISE * torch.linalg.inv(fit.gram)
    z = (fit.beta.mean(0) - beta) / (covariance.diagonal() / n).sqrt()
    assert z.abs().max() < 4
    centred = fit.beta - beta
    products = centred[:, :, None] * centred[:, None]
    assert z_score(products, covariance).abs().max() < 4


def compute_loss(b, beta, Q):
    """(b − θ)ᵀ Q (b − θ) of each draw."""
    return ((b - beta) @ Q * (b - beta)).sum(1)


def coverage_z(fit, beta, level, radius):
    share = float((fit.distance(beta) <= radius).double().mean())
    return (share - level) / (level * (1 - level) / len(fit.beta)) ** 0.5


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("variance", [NOISE, None])
def test_confidence_ellipsoid_has_its_coverage(level, variance):
    fit, beta = repeat_estimate(variance)
    assert abs(coverage_z(fit, beta, level, fit.radius(level))) < 4


def test_ellipsoid_ignoring_estimated_noise_fails():
    fit, beta = repeat_estimate(None)
    gaussian = dataclasses.replace(fit, known_noise=NOISE).radius(0.9)
    assert coverage_z(fit, beta, 0.9, gaussian) < -10


def test_james_stein_as_printed():
    """β̂(1 − (D − 2)σ²/β̂ᵀXᵀXβ̂) for the loss ‖X(β − b)‖²; for Q = I, the matrix form for one data
    set at a time."""
    fit, _ = repeat_estimate(NOISE, n=5)
    eye = torch.eye(D, dtype=F64)
    for Q in (fit.gram, eye, eye * torch.arange(1, D + 1)):
        for b, ours in zip(fit.beta, james_stein(fit, Q, False), strict=True):
            pull = torch.linalg.inv(Q) @ fit.gram @ b
            assert_close(ours, b - (D - 2) * NOISE * pull / (b @ fit.gram @ pull))
    factor = 1 - (D - 2) * NOISE / ((fit.beta @ fit.gram) * fit.beta).sum(1)
    assert_close(james_stein(fit, fit.gram, False), factor[:, None] * fit.beta)
    assert_close(james_stein(fit, fit.gram, True), factor.clamp_min(0)[:, None] * fit.beta)


def stein_identity_z(fit, beta, Q, estimate):
    """z of R(least squares) − R(estimate) − (D − 2)²σ⁴ E[1/β̂ᵀGQ⁻¹Gβ̂], which is 0 for James–Stein
    by Stein's lemma."""
    pulled = fit.beta @ fit.gram
    gain = (D - 2) ** 2 * NOISE**2 / (pulled @ torch.linalg.inv(Q) * pulled).sum(1)
    fall = compute_loss(fit.beta, beta, Q) - compute_loss(estimate, beta, Q)
    return z_score(fall - gain, 0.0), gain.mean()


@pytest.mark.parametrize("prediction", [True, False])
def test_james_stein_dominates_by_the_amount_of_steins_lemma(prediction):
    fit, _ = repeat_estimate(NOISE)
    Q = fit.gram if prediction else torch.eye(D, dtype=F64)
    errors = fit.beta - regression()[2]
    for r in (0.0, 0.3, 1.0, 3.0):
        beta = r * regression()[2]
        shifted = dataclasses.replace(fit, beta=beta + errors)
        z, gain = stein_identity_z(shifted, beta, Q, james_stein(shifted, Q, False))
        assert abs(z) < 4
        assert gain > 0
        plain, stopped = (compute_loss(james_stein(shifted, Q, s), beta, Q) for s in (False, True))
        assert z_score(plain - stopped, 0.0).nan_to_num() > -3  # truncation at 0 improves further
    expands = 2 * shifted.beta - james_stein(shifted, Q, False)  # the mutant: away from 0
    assert abs(stein_identity_z(shifted, beta, Q, expands)[0]) > 10


def test_ridge_is_penalised_least_squares_and_a_posterior_mean():
    X, y, _ = regression()
    penalty = double([0.5, 1.0, 2.0, 0.1])
    ours = ridge(least_squares(X, y, NOISE), penalty)
    assert_close(ours, torch.linalg.inv(X.T @ X + penalty.diag()) @ X.T @ y)
    assert_close(ours, coefficients(X, y, penalty).m)


def test_ridge_risk_satisfies_the_existence_theorem():
    fit, beta = repeat_estimate(NOISE)
    eye = torch.eye(D, dtype=F64)
    for value in (0.0, 0.3, 3.0):
        penalty = torch.full((D,), value, dtype=F64)
        losses = (ridge(fit, penalty) - beta).square().sum(1)
        exact = sum(ridge_risk(fit.gram, beta, NOISE, penalty, eye))
        assert z_score(losses, exact).abs() < 4
    least = sum(ridge_risk(fit.gram, beta, NOISE, torch.zeros(D, dtype=F64), eye))
    assert float(least) == pytest.approx(float(NOISE * torch.linalg.inv(fit.gram).trace()))
    # Hoerl & Kennard, Theorem 4.3: any λ < 2σ²/‖β‖² lowers the risk
    for value in (1e-3, 0.1, 1.9 * NOISE / float(beta.square().sum())):
        penalty = torch.full((D,), value, dtype=F64)
        assert sum(ridge_risk(fit.gram, beta, NOISE, penalty, eye)) < least


def test_too_few_rows_are_refused():
    X, y, _ = regression()
    with pytest.raises(NumericalError, match=r"singular; use more rows .*raise dataset.n_train"):
        least_squares(X[:2], y[:2], NOISE)
    twice = torch.cat([X, X[:, :1]], 1)
    with pytest.raises(
        NumericalError, match=r"no column .* constant .*remove it from dataset.inputs"
    ):
        least_squares(twice - twice.mean(0), y)
    with pytest.raises(NumericalError, match=r"no rows .*; raise dataset.n_train"):
        least_squares(X[:D], y[:D])
    assert math.isfinite(float(least_squares(X[: D + 1], y[: D + 1]).noise))


@pytest.mark.parametrize("positive", [False, True])
def test_james_stein_with_unknown_variance_as_printed(positive):
    """(1 − (D − 2)/(N − D + 2) rss/β̂ᵀGβ̂) β̂ for Q = G: James & Stein (1961), section 2, data set
    by data set."""
    g = generator(3)
    X = normal(g, 14, 5)
    y = 0.4 * (X @ torch.ones(5, dtype=F64)) + normal(g, 200, 14)
    fit = least_squares(X, y)
    beta = torch.linalg.lstsq(X, y.T).solution
    rss = (y.T - X @ beta).square().sum(0)
    factors = 1 - (5 - 2) / (14 - 5 + 2) * rss / (X @ beta).square().sum(0)
    literal = (factors.clamp_min(0) if positive else factors) * beta
    assert_close(james_stein(fit, fit.gram, positive), literal.T)
    assert factors.min() < 0 < factors.max()
