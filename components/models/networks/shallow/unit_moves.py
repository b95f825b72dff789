"""Moves of a shallow network's hidden units, with the output weights integrated out."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.models.networks.shallow.hierarchical_prior import (
    ShallowPrior,
    ShallowWeights,
)


class Marginal(NamedTuple):
    """p(y | γ, ν) with (a, β) integrated out, and the distribution of (a, β) = mean + s u."""

    value: Tensor  # log p(y | γ, ν) [K]
    root: Tensor  # L [K, D, D], L Lᵀ = I + σ⁻² S Zᵀ Z S
    away: Tensor  # L⁻¹ σ⁻² S Zᵀ (y − Z mean) [K, D]


def choose(accept: Tensor, ours: Marginal, theirs: Marginal) -> Marginal:
    """``ours`` for chains that accept [K], ``theirs`` for the others."""
    return Marginal(
        torch.where(accept, ours.value, theirs.value),
        torch.where(accept[:, None, None], ours.root, theirs.root),
        torch.where(accept[:, None], ours.away, theirs.away),
    )


def walk(
    prior: ShallowPrior,
    scales: Tensor,
    weights: ShallowWeights,
    j: int,
    generator: torch.Generator,
) -> tuple[ShallowWeights, Tensor]:
    """γ̃_j ~ N(γ_j, s²) with one of the scales s = c C_γ^½, and log p(γ̃_j | ν)/p(γ_j | ν) [K]; −∞
    for an excluded j."""
    old = weights.gamma
    K, _, r = old.shape
    picks = torch.randint(len(scales), (K,), generator=generator, device=old.device)
    gamma = old.clone()
    gamma[:, j] += scales[picks, None] * standard_normal((K, r), generator, old)
    log_density = prior.log_gamma_weights
    ratio = log_density(gamma[:, [j]], weights.nu) - log_density(old[:, [j]], weights.nu)
    return weights._replace(gamma=gamma), torch.where(weights.m > j, ratio[:, 0], -torch.inf)


def jump(
    prior: ShallowPrior, weights: ShallowWeights, generator: torch.Generator
) -> tuple[ShallowWeights, Tensor]:
    """Add a unit, γ ~ N(μ_γ, S_γ), or remove one of the m; return log p(m')/p(m) [K]."""
    old = weights.gamma
    m = weights.m.long()
    K = len(old)
    chains = torch.arange(K, device=old.device)
    most = prior.units
    u = standard_uniform((2, K), generator, old)
    is_birth = u[0] < 0.5
    born = old.clone()
    born[chains, m.clamp_max(most - 1)] = prior.draw_gamma(weights.nu, generator)
    dead = old.clone()
    last = (m - 1).clamp_min(0)
    dead[chains, (u[1] * m).long().clamp_max(most - 1)] = old[chains, last]
    dead[chains, last] = 0.0
    changed = torch.where(is_birth, m + 1, m - 1)
    log_units = prior.log_units(old)
    ratio = log_units[changed.clamp(0, most)] - log_units[m]
    allowed = (changed >= 0) & (changed <= most)
    gamma = torch.where((is_birth & allowed)[:, None, None], born, dead)
    candidate = weights._replace(gamma=gamma, m=changed.clamp(0, most).to(old))
    return candidate, torch.where(allowed, ratio, -torch.inf)
