"""Losses ℓ(x, y) of generalised Bayesian updates, as log potentials −ℓ up to constants.

log G_t(y_t | x) for x [R, N, dx] is [R, N].  Constants are chosen so that a loss tends to −log g in
its limit; they change the normaliser but not the weights.

Source: Boustati (2021), eqs. (2.92), (6.4)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.capabilities import GaussianNoise, PowerIntegral, StateSpace
from components.contracts.sequences import Observation
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.maths.losses.robust import beta_potential, gamma_potential, huber


def log_likelihood(model: StateSpace, batch: Observation, x: Tensor) -> Tensor:
    """Log-likelihood log g_t(y_t | x); its negative is the loss of the KL divergence.

    Source: Boustati (2021), eq. (2.96).
    """
    return model.log_observation(batch.y, x, batch.t)


def log_beta_likelihood(model: PowerIntegral, batch: Observation, x: Tensor, beta: float) -> Tensor:
    """log G^β(y|x) = (g^β − 1)/β − (∫ g(y'|x)^{β+1} dy' − 1)/(β+1), g = g(y|x); x [R, N, dx] -> [R,
    N].

    Equals (6.6) up to the constant 1/β − 1/(β+1), subtracted so that β → 0 gives log g(y|x) rather
    than infinity.

    Source: Boustati (2021), eqs. (6.6), (6.7), (6.11)."""
    return _log_divergence(model, batch, x, beta, beta_potential)


def _log_divergence(
    model: PowerIntegral,
    batch: Observation,
    x: Tensor,
    power: float,
    potential: Callable[[Tensor, Tensor, float], Tensor],
) -> Tensor:
    log_g = model.log_observation(batch.y, x, batch.t)  # [R, N]
    if power == 0:
        return log_g
    integral = model.log_power_integral(x, batch.t, 1 + power)  # [R, N] or []
    return potential(log_g, integral, power)


def log_beta_estimate(
    model: GaussianNoise,
    batch: Observation,
    x: Tensor,
    beta: float,
    log_bound: float,
    generator: torch.Generator,
) -> Tensor:
    """log Ĝ of an unbiased estimate Ĝ ≥ 0 of G^β(y|x), without the integral ∫ g^{1+β}; [R, N].

        e^{−I/(1+β)} = E Π_{j ≤ κ} (1 − g(y'_j|x)^β / s),   κ ~ Poisson(s/(1+β)),   y'_j ~ g(·|x)

    log s = β ``log_bound``, log_bound = log sup g; y'_j = h(x) + L z, so that
    g^β/s = exp(−β‖z‖²/2).

    Source: Boustati (2021), section 6.3.2; Beskos et al. (2006), section 4 (Poisson estimator);
    Fearnhead, Papaspiliopoulos and Roberts (2008) (random weights)."""
    log_g = model.log_observation(batch.y, x, batch.t)  # [R, N]
    if beta == 0:
        return log_g
    rate = math.exp(beta * log_bound) / (1 + beta)
    counts = torch.poisson(torch.full_like(log_g, rate).cpu(), generator=generator).to(x.device)
    most = int(counts.max())
    shape = (*log_g.shape, most, batch.y.shape[-1])
    z = standard_normal(shape, generator, x)
    factors = torch.log(-torch.expm1(-0.5 * beta * z.square().sum(-1)))  # [R, N, κ]
    used = torch.arange(most, device=x.device) < counts.unsqueeze(-1)
    product = torch.where(used, factors, 0.0).sum(-1)
    return torch.expm1(beta * log_g) / beta + 1 / (1 + beta) + product


def log_beta_bound(log_bound: float, integral: Tensor, beta: float) -> Tensor:
    """log sup_y G^β(y|x) for log g ≤ ``log_bound``, with ``integral`` = log ∫ g^{β+1}."""
    if beta == 0:
        return torch.full_like(integral, log_bound)
    largest = torch.expm1(integral.new_tensor(beta * log_bound)) / beta
    return largest - torch.expm1(integral) / (1 + beta)


def log_gamma_likelihood(
    model: PowerIntegral, batch: Observation, x: Tensor, gamma: float
) -> Tensor:
    """Log of the γ-divergence likelihood G^γ, which tends to log g as γ → 0.

        log G^γ(y|x) = (g^γ / (∫ g(y'|x)^{1+γ} dy')^{γ/(1+γ)} − 1)/γ

    x [R, N, dx] -> [R, N].  Unlike the β-likelihood it is unchanged if g is multiplied
    by a constant.

    Source: Fujisawa & Eguchi (2008), section 2; Futami, Sato & Sugiyama (2018), section 3.
    """
    return _log_divergence(model, batch, x, gamma, gamma_potential)


def log_huber_likelihood(
    model: GaussianNoise, batch: Observation, x: Tensor, threshold: float
) -> Tensor:
    """log G(y|x) = −Σ_j ρ(r_j) + log g at r = 0, r = L⁻¹(y − h(x)):  ρ(r) = r²/2 for |r| ≤ k, else
    k|r| − k²/2.

    It tends to log g as the threshold k → ∞.  Source: Huber (1964), eq. (2.4)."""
    r, log_scale = whitened_residuals(model, batch, x)
    rho = huber(r, threshold)
    return -rho.sum(-1) - log_scale - 0.5 * r.shape[-1] * LOG_2PI


def whitened_residuals(
    model: GaussianNoise, batch: Observation, x: Tensor
) -> tuple[Tensor, Tensor]:
    """L⁻¹(y − h(x)) [R, N, dy] and log |L| [1] or [R, 1], Σ = L Lᵀ."""
    L, _ = torch.linalg.cholesky_ex(model.Sigma)
    residuals = batch.y.unsqueeze(-2) - model.observation_mean(x, batch.t)  # [R, N, dy]
    return residuals @ torch.linalg.inv(L).mT, torch.linalg.diagonal(L).log().sum(-1, keepdim=True)
