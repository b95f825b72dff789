"""Gaussian process regression on eleven points with three unknown hyperparameters."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.datasets.named_target import NamedTarget, Variable
from components.maths.bijectors import POSITIVE

SHAPE = 25.0
RATE = 4.0
ALPHA = 2.0
SIGMA = 1.0  # ρ ~ Gamma(25, 4), α ~ N⁺(0, 2²), σ ~ N⁺(0, 1)


def gaussian_process(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """y ~ N(0, α² exp(−(x − x')²/2ρ²) + σI): σ is a variance;  θ = (log ρ, log α, log σ) [K, 3].

    If rounding leaves the covariance without a Cholesky factor, the density is 0.  Starts are about
    as dispersed as the prior."""
    x, y = (like.new_tensor(data[key]) for key in ("x", "y"))
    square = (x[:, None] - x).square()  # [N, N]

    def log_density(theta: Tensor) -> Tensor:
        rho, alpha, sigma = theta.exp()[:, :, None, None].unbind(1)  # [K, 1, 1] each
        eye = torch.eye(len(y)).to(y)
        covariance = alpha.square() * (-0.5 * square / rho.square()).exp() + sigma * eye
        finite = torch.isfinite(covariance).flatten(1).all(1)
        # A failed matrix is replaced before factorisation, because its gradient would be NaN and
        # Cholesky rejects some.
        L, info = torch.linalg.cholesky_ex(torch.where(finite[:, None, None], covariance, eye))
        good = finite & (info == 0)
        L = torch.where(good[:, None, None], L, eye)
        white = torch.linalg.solve_triangular(L, y.expand(len(theta), -1).unsqueeze(2), upper=False)
        log_likelihood = -L.diagonal(dim1=1, dim2=2).log().sum(1) - 0.5 * white.square().sum((1, 2))
        rho = rho.flatten()
        alpha = alpha.flatten()
        sigma = sigma.flatten()
        log_prior = (
            (SHAPE - 1) * theta[:, 0]
            - RATE * rho
            - 0.5 * (alpha / ALPHA) ** 2
            - 0.5 * (sigma / SIGMA) ** 2
        )
        # sum of θ: log-Jacobian
        return torch.where(good, log_likelihood + log_prior + theta.sum(1), -torch.inf)

    variables = (
        Variable("rho", 1, POSITIVE, math.log(SHAPE / RATE), 0.4),
        Variable("alpha", 1, POSITIVE, math.log(ALPHA), 0.5),
        Variable("sigma", 1, POSITIVE, math.log(SIGMA), 0.5),
    )
    return NamedTarget(variables, log_density, like)
