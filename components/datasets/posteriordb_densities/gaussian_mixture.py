"""A univariate mixture of two Gaussians, identified by the order of their means."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from components.datasets.named_target import NamedTarget, Variable
from components.maths.bijectors import POSITIVE, Interval, Ordered

WIDTH = 2.0
# prior standard deviation of means and scales; both parameters of the weight's Beta prior
BETA = 5.0
MEANS = Ordered()
WEIGHT = Interval(0.0, 1.0)


def two_gaussians(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """y_n ~ w N(μ_1, σ_1²) + (1 − w) N(μ_2, σ_2²), μ_k ~ N(0, 2²) with μ_1 < μ_2, σ_k ~ N⁺(0, 2²),
    w ~ Beta(5, 5).

    θ = (μ_1, log(μ_2 − μ_1), log σ, logit w) [K, 5].  Starts have means around the quartiles of the
    data, with an sd of a tenth of their distance; log σ and logit w ~ N(0, ½²).  Far from there,
    one component takes all data and the other collapses on a few points, and chains take long to
    leave this mode."""
    y = like.new_tensor(data["y"])

    def log_density(theta: Tensor) -> Tensor:
        mu, log_jacobian = MEANS.forward(theta[:, :2])
        log_scale = theta[:, 2:4]
        logit = theta[:, 4:]
        # log w, log(1 − w) [K, 2]
        log_weights = torch.cat([logsigmoid(logit), logsigmoid(-logit)], 1)
        constant = log_weights - log_scale
        precision = (-2 * log_scale).exp()
        first, second = (
            constant[:, k, None] - 0.5 * (y - mu[:, k, None]).square() * precision[:, k, None]
            for k in (0, 1)
        )  # [K, N] each
        log_likelihood = torch.logaddexp(first, second).sum(1)
        log_prior = -0.5 * (mu / WIDTH).square().sum(1) - 0.5 * (
            log_scale.exp() / WIDTH
        ).square().sum(1)
        log_prior = log_prior + (BETA - 1) * log_weights.sum(1)
        # NaN for μ = ∞, with prior density 0
        log_likelihood = torch.where(torch.isfinite(log_prior), log_likelihood, 0.0)
        # last three: Jacobian
        return log_likelihood + log_prior + log_jacobian + log_scale.sum(1) + log_weights.sum(1)

    low = y.quantile(0.25)
    distance = y.quantile(0.75) - low
    variables = (
        Variable(
            "mu",
            2,
            MEANS,
            torch.stack([low, distance.log()]),
            torch.stack([0.1 * distance, y.new_tensor(0.1)]),
        ),
        Variable("sigma", 2, POSITIVE, spread=0.5),
        Variable("theta", 1, WEIGHT, spread=0.5),
    )
    return NamedTarget(variables, log_density, like)
