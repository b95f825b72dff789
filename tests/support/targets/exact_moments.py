"""Moments of posteriors by closed forms and quadrature."""

import torch
from support.runs.configured import double
from torch import Tensor

from components.contracts.problems import Batch
from components.datasets.posteriordb_densities.eight_schools import HEIGHT, TAU
from components.models.linear.linear_regression import LinearRegressionModule


def regression_moments(model: LinearRegressionModule, batch: Batch) -> tuple[Tensor, Tensor]:
    """E of the parameters and of their squares under the posterior of all rows, [P'] each; a + N/2
    must exceed 2."""
    posterior = model.coefficients(batch)
    if not isinstance(model.noise, tuple):
        return posterior.m, posterior.m.square() + model.noise * posterior.covariance.diagonal()
    a, b = posterior.noise_posterior(*model.noise)
    mean = (b / (a - 1)).unsqueeze(0)
    second = (b.square() / ((a - 1) * (a - 2))).unsqueeze(0)
    spread = mean * posterior.covariance.diagonal()  # of β, a Student t with 2a degrees of freedom
    return torch.cat([posterior.m, mean]), torch.cat([posterior.m.square() + spread, second])


def school_moments(data: dict[str, list[float]], points: int = 4001) -> tuple[Tensor, Tensor]:
    """E and E[·²] of (ϑ, μ, τ) [J+2] each: ϑ and μ given τ are Gaussian, and τ is integrated
    out in log τ.

    μ | τ, y ~ N(m, v), 1/v = 1/5² + Σ_j 1/(σ_j² + τ²), m = v Σ_j y_j/(σ_j² + τ²);  ϑ_j | μ, τ, y has mean
    b_j y_j + (1 − b_j) μ and variance b_j σ_j², b_j = τ²/(σ_j² + τ²).  The prior of τ² has no second
    moment, so that the quadrature extends far into the tail."""
    y = double(data["y"])
    sigma = double(data["sigma"])
    log_tau = torch.linspace(-25.0, 25.0, points).to(y)
    square = (2 * log_tau).exp()[:, None]  # τ² [M, 1]
    total = sigma.square() + square  # [M, J]
    v = 1 / (HEIGHT**-2 + (1 / total).sum(1))
    m = v * (y / total).sum(1)
    log_weight = TAU(log_tau) + log_tau - 0.5 * total.log().sum(1) + 0.5 * v.log()
    log_weight = log_weight - 0.5 * (y.square() / total).sum(1) + 0.5 * m.square() / v
    weight = log_weight.softmax(0)
    b = square / total
    mean = b * y + (1 - b) * m[:, None]  # E[ϑ | τ, y]
    variance = b * sigma.square() + (1 - b).square() * v[:, None]
    given_tau = torch.cat([mean, m[:, None], square.sqrt()], 1)
    second = torch.cat([mean.square() + variance, (m.square() + v)[:, None], square], 1)
    return weight @ given_tau, weight @ second
