"""Densities that are recursive in time, computed without a loop: a hidden Markov model and a
GARCH(1, 1).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from components.datasets.named_target import (
    NamedTarget,
    NamedVariables,
    Variable,
)
from components.maths.bijectors import POSITIVE, Interval, Ordered, Simplex
from components.maths.exponential.standard_draws import standard_normal

ROW = Simplex()
MEANS = Ordered(positive=True)
UNIT = Interval(0.0, 1.0)


class HiddenMarkov(NamedVariables):
    """Two states, initially uniform; y_t ~ N(μ_{z_t}, 1), 0 < μ_1 < μ_2, μ_1 ~ N(3, 1), μ_2 ~ N(10,
    1); the rows of transitions have flat priors.

    θ = (two rows of the transition matrix by stick breaking, log μ_1, log(μ_2 − μ_1)) [K, 4].  The
    forward algorithm is a product of T matrices, multiplied pairwise in ⌈log₂ T⌉ rounds for all
    chains, in logarithms."""

    variables = (Variable("theta1", 1, ROW), Variable("theta2", 1, ROW), Variable("mu", 2, MEANS))

    def __init__(self, data: dict[str, Any], like: Tensor):
        self.like = like
        self.y = like.new_tensor(data["y"])  # [T]

    def log_density(self, theta: Tensor) -> Tensor:
        logits = theta[:, :2]
        rows_jacobian = ROW.forward(logits.unsqueeze(2))[1].sum(1)
        log_transition = torch.stack([logsigmoid(logits), logsigmoid(-logits)], 2)  # [K, from, to]
        mu, means_jacobian = MEANS.forward(theta[:, 2:])
        # log p(y_t | z_t) up to a constant [K, T, 2]
        emission = -0.5 * (self.y[:, None] - mu[:, None]).square()
        log_prior = -0.5 * (mu - mu.new_tensor([3.0, 10.0])).square().sum(1)
        product = log_transition[:, None] + emission[:, 1:, None]  # [K, T−1, from, to]
        while product.shape[1] > 1:
            odd = product[:, product.shape[1] // 2 * 2 :]
            pairs = product.shape[1] // 2
            # [K, pairs, 2, 2]
            left, right = product[:, : 2 * pairs].unflatten(1, (pairs, 2)).unbind(2)
            product = torch.logsumexp(left.unsqueeze(4) + right.unsqueeze(2), 3)
            product = torch.cat([product, odd], 1)
        log_likelihood = torch.logsumexp(emission[:, 0, :, None] + product[:, 0], (1, 2))
        return log_likelihood + log_prior + rows_jacobian + means_jacobian

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """Rows of the transition matrix from N(0, 1), means from N(3, ½²) and N(10, ½²), half the
        prior's width."""
        z = standard_normal((n, self.dim), generator, self.like)
        mu = (z.new_tensor([3.0, 10.0]) + 0.5 * z[:, 2:]).clamp(min=z.new_tensor([1.0, 7.0]))
        return torch.cat([z[:, :2], MEANS.inverse(mu)], 1)


def garch(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """y_t ~ N(μ, s_t²), s_t² = α_0 + α_1 (y_{t−1} − μ)² + β_1 s_{t−1}², s_1 known; α_0 > 0, 0 <
    α_1, 0 < β_1 < 1 − α_1, flat.

    θ = (μ, log α_0, logit α_1, logit β_1/(1 − α_1)) [K, 4].  With c_t = α_0 + α_1 (y_{t−1} − μ)²,
    s_t² = Σ_j β_1^j c_{t−j}; it is summed in ⌈log₂ T⌉ doublings, s² ← s² + β_1^{2^k} (s² of 2^k
    steps earlier), for all chains.  Starts have μ around the mean of the series, log α_0 around its
    log variance."""
    y = like.new_tensor(data["y"])  # [T]

    def parameters(theta: Tensor) -> tuple[Tensor, Tensor]:
        """(μ, α_0, α_1, β_1) [K, 4], and the log-Jacobian [K]."""
        alpha0, log_jacobian0 = POSITIVE.forward(theta[:, 1:2])
        alpha1, log_jacobian1 = UNIT.forward(theta[:, 2:3])
        # 1 − α_1 = s(−θ): accurate for α_1 near 1
        beta1, log_jacobian2 = Interval(0.0, (-theta[:, 2:3]).sigmoid()).forward(theta[:, 3:])
        values = torch.cat([theta[:, :1], alpha0, alpha1, beta1], 1)
        return values, log_jacobian0 + log_jacobian1 + log_jacobian2

    def report(*theta: Tensor) -> tuple[Tensor, ...]:
        return parameters(torch.cat(theta, 1))[0].split(1, 1)

    def recover(mu: Tensor, alpha0: Tensor, alpha1: Tensor, beta1: Tensor) -> tuple[Tensor, ...]:
        return mu, alpha0.log(), alpha1.logit(), (beta1 / (1 - alpha1)).logit()

    def log_density(theta: Tensor) -> Tensor:
        values, log_jacobian = parameters(theta)
        mu, alpha0, alpha1, beta1 = values.split(1, 1)  # [K, 1] each
        square = (y - mu).square()  # [K, T]
        first = torch.full_like(mu, data["sigma1"] ** 2)
        variance = torch.cat([first, alpha0 + alpha1 * square[:, :-1]], 1)  # c_t
        power = beta1
        step = 1
        while step < len(y):
            variance = variance + power * pad(variance[:, :-step], (step, 0))
            power = power.square()
            step = 2 * step
        log_likelihood = -0.5 * (variance.log() + square / variance).sum(1)
        # of floating point; beyond it the density is 0
        in_range = ((variance > 0) & torch.isfinite(variance)).all(1)
        return torch.where(in_range, log_likelihood, -torch.inf) + log_jacobian

    variables = (
        Variable("mu", 1, None, y.mean(), 0.25 * y.std()),
        Variable("alpha0", 1, None, y.var().log(), 0.5),
        Variable("alpha1"),
        Variable("beta1"),
    )
    return NamedTarget(variables, log_density, like, report, recover)
