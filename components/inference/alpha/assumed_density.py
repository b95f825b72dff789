"""Updates of assumed density filtering: Gaussians and Gammas from their normalisers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI

WIDEST = 1e6  # variance above which a prior factor is not updated


@dataclass(frozen=True)
class Gamma:
    """Gamma(a, b) of a precision, with the density ∝ γ^{a−1} e^{−bγ}."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        return self.a / self.b


def relu_moments(m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of max(0, a), a ~ N(m, v), elementwise.

    With α = m/√v and γ = φ(−α)/Φ(α): mean Φ(α) (m + √v γ), variance
    mean (m + √v γ) Φ(−α) + Φ(α) v (1 − γ (γ + α)).

    Source: Hernández-Lobato and Adams (2015), eqs. (14) and (15).
    """
    sd = v.clamp_min(1e-30).sqrt()
    alpha = m / sd
    log_share = torch.special.log_ndtr(alpha)
    share = log_share.exp()
    ratio = (-0.5 * alpha.square() - 0.5 * LOG_2PI - log_share).exp()
    inner = m + sd * ratio
    mean = share * inner
    variance = mean * inner * torch.special.ndtr(-alpha) + share * v * (1 - ratio * (ratio + alpha))
    return mean, variance.clamp_min(1e-30)


def log_normal(residual: float, variance: float) -> float:
    """log N(residual | 0, variance)."""
    return -0.5 * (math.log(2 * math.pi * variance) + residual * residual / variance)


def update_gamma(q: Gamma, residual: float, variance: float) -> Gamma:
    """q(γ) after the factor N(residual | 0, variance + 1/γ): the Gamma with the tilted E[γ] and
    E[γ²].

        a ← {Z Z₂/Z₁² (a + 1)/a − 1}⁻¹,   b ← {Z₂/Z₁ (a + 1)/b − Z₁/Z a/b}⁻¹

    Z, Z₁, Z₂ are the normalisers under Gamma(a, b), Gamma(a + 1, b), Gamma(a + 2, b), with the
    Student-t replaced by a Gaussian of the same variance.  If the result is improper, q is
    unchanged.

    Source: Hernández-Lobato and Adams (2015), eqs. (7) and (8), and the supplement.
    """
    z, z1, z2 = (log_normal(residual, variance + q.b / (q.a + k - 1)) for k in range(3))
    denominator_a = math.exp(z2 - 2 * z1 + z) * (q.a + 1) / q.a - 1
    denominator_b = math.exp(z2 - z1) * (q.a + 1) / q.b - math.exp(z1 - z) * q.a / q.b
    if denominator_a <= 0 or denominator_b <= 0 or 1 / denominator_a <= 1:
        return q
    return Gamma(1 / denominator_a, 1 / denominator_b)


def update_prior(
    mean: float, variance: float, weight: Gamma, site: list[float]
) -> tuple[float, float, Gamma, list[float]]:
    """q(w), q(λ) and the site after one update of expectation propagation of N(w | 0, 1/λ).

    ``site`` is the factor's contribution: precision, precision × mean, Δa, Δb.  The site is
    removed, the factor is included by its normaliser N(0 | m, v + b/(a − 1)), and the change is the
    new site.  If the cavity or the result is improper, nothing changes.
    """
    same = mean, variance, weight, site
    precision = 1 / variance - site[0]
    cavity = Gamma(weight.a - site[2], weight.b - site[3])
    if precision <= 1 / WIDEST or cavity.a <= 1 or cavity.b <= 0:
        return same
    v = 1 / precision
    m = (mean / variance - site[1]) * v
    total = v + cavity.b / (cavity.a - 1)
    by_mean = -m / total
    by_variance = 0.5 * (m * m / total - 1) / total
    new_mean = m + v * by_mean
    new_variance = v - v * v * (by_mean * by_mean - 2 * by_variance)
    new = update_gamma(cavity, m, v)
    if new_variance <= 0 or new is cavity:
        return same
    share = [
        1 / new_variance - precision,
        new_mean / new_variance - m / v,
        new.a - cavity.a,
        new.b - cavity.b,
    ]
    return new_mean, new_variance, new, share
