"""Losses of generalised Bayesian updates, as log potentials −ℓ with their ordinary limits.

Source: Boustati (2021), eqs. (2.92), (6.6), (6.11)."""

from __future__ import annotations

import torch
from torch import Tensor


def beta_potential(log_g: Tensor, log_integral: Tensor, beta: float) -> Tensor:
    """(g^β − 1)/β − (∫ g^{1+β} − 1)/(1+β) from log g and log ∫ g^{1+β}; β → 0 gives log g.

    Source: Boustati (2021), eqs. (6.6), (6.11), up to the constant 1/β − 1/(β+1)."""
    if beta == 0:
        return log_g
    return torch.expm1(beta * log_g) / beta - torch.expm1(log_integral) / (1 + beta)


def gamma_potential(log_g: Tensor, log_integral: Tensor, gamma: float) -> Tensor:
    """(g^γ / (∫ g^{1+γ})^{γ/(1+γ)} − 1)/γ from log g and log ∫ g^{1+γ}; γ → 0 gives log g.

    Source: Fujisawa & Eguchi (2008), section 2; Futami, Sato & Sugiyama (2018), section 3."""
    if gamma == 0:
        return log_g
    return torch.expm1(gamma * log_g - gamma / (1 + gamma) * log_integral) / gamma


def huber(r: Tensor, threshold: float) -> Tensor:
    """ρ(r) = r²/2 for |r| ≤ k, else k|r| − k²/2; k = ``threshold``.

    Source: Huber (1964), eq. (2.4)."""
    size = r.abs()
    return torch.where(size <= threshold, 0.5 * r.square(), threshold * size - 0.5 * threshold**2)
