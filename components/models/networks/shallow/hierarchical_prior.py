"""Hierarchical prior of a shallow network: its weights, their hyperparameters, and the number of
hidden units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import normal_like, standard_normal
from components.models.networks.bnn import log_gamma_density


class UnitHyperparameters(NamedTuple):
    """ν = (μ_β, σ_β, μ_γ, S_γ, σ²) of K networks."""

    mu_beta: Tensor  # [K]
    log_tau_beta: Tensor  # log σ_β⁻² [K]
    mu_gamma: Tensor  # [K, r]
    factor: Tensor  # L [K, r, r] lower triangular, S_γ⁻¹ = L Lᵀ
    log_tau: Tensor  # log σ⁻² [K]


class ShallowWeights(NamedTuple):
    """K shallow networks; weights of excluded units are 0."""

    a: Tensor  # of the linear term [K, r], or [K, 0]
    beta: Tensor  # [K, M]
    gamma: Tensor  # [K, M, r]
    m: Tensor  # number of included hidden units, the first m of M [K]
    nu: UnitHyperparameters

    @property
    def included(self) -> Tensor:
        """d_j, 1 for the first m units, [K, M]."""
        places = torch.arange(self.beta.shape[1], device=self.m.device)
        return (places < self.m[:, None]).to(self.beta)


def log_gamma(shape: float | Tensor, rate: Tensor, generator: torch.Generator) -> Tensor:
    """Logarithm of a draw from Gamma(shape, rate) for each rate [K]."""
    drawn = draw_gamma(shape + torch.zeros_like(rate), generator)
    return drawn.clamp_min(torch.finfo(rate.dtype).tiny).log() - rate.log()


def wishart_factor(degrees: Tensor, rate: Tensor, generator: torch.Generator) -> Tensor:
    """L [K, r, r] of Λ = L Lᵀ ~ Wishart(ν, W⁻¹), E Λ = ν W⁻¹; degrees ν [K], rate W [K, r, r].

    Source: Bartlett's decomposition, Smith and Hocking (1972)."""
    K, r, _ = rate.shape
    below = standard_normal((K, r, r), generator, rate).tril(-1)
    shapes = 0.5 * (degrees[:, None] - torch.arange(r, device=rate.device))
    chi = draw_gamma(shapes, generator)
    A = below + (2 * chi).sqrt().diag_embed()
    root = torch.linalg.cholesky(rate)  # W = R Rᵀ, so that Λ is R⁻ᵀ A Aᵀ R⁻¹
    precision = torch.linalg.solve_triangular(root.mT, A, upper=True)
    return torch.linalg.cholesky(precision @ precision.mT)


@dataclass(frozen=True)
class ShallowPrior:
    """Prior of θ [K, P] = (a, β, γ, m if variable, and if learned μ_β, log σ_β⁻², μ_γ, L, log σ⁻²),
    with the logarithm of the diagonal of L."""

    units: int  # M
    columns: int  # r, inputs and their constant
    linear: bool
    variable: bool
    learned: bool
    continuation: float  # α
    linear_sd: float
    beta_sd: float
    gamma_sd: float
    noise_sd: float
    shape: float  # c_b and s
    degrees: float  # c_γ

    @cached_property
    def pieces(self) -> list[int]:
        """Lengths of the parts of θ."""
        M = self.units
        r = self.columns
        hyperparameters = [1, 1, r, r * (r + 1) // 2, 1] if self.learned else [0] * 5
        return [r * self.linear, M, M * r, int(self.variable), *hyperparameters]

    def unpack(self, theta: Tensor) -> ShallowWeights:
        """Weights and hyperparameters of θ [K, P]."""
        a, beta, gamma, m, *learned = theta.split(self.pieces, 1)
        nu = self.read(learned) if self.learned else self.start(theta)
        units = m[:, 0] if self.variable else theta.new_full((len(theta),), self.units)
        return ShallowWeights(a, beta, gamma.unflatten(1, (self.units, self.columns)), units, nu)

    def read(self, parts: Sequence[Tensor]) -> UnitHyperparameters:
        mu_beta, log_tau_beta, mu_gamma, entries, log_tau = parts
        rows, columns = torch.tril_indices(self.columns, self.columns, device=entries.device)
        factor = entries.new_zeros(len(entries), self.columns, self.columns)
        factor[:, rows, columns] = torch.where(rows == columns, entries.exp(), entries)
        return UnitHyperparameters(
            mu_beta[:, 0], log_tau_beta[:, 0], mu_gamma, factor, log_tau[:, 0]
        )

    def start(self, like: Tensor) -> UnitHyperparameters:
        """ν for known hyperparameters: centred, with the standard deviations of the prior."""
        K = len(like)
        r = self.columns
        unit = torch.eye(r, dtype=like.dtype, device=like.device).expand(K, r, r)
        return UnitHyperparameters(
            like.new_zeros(K),
            like.new_full((K,), -2 * math.log(self.beta_sd)),
            like.new_zeros(K, r),
            unit / self.gamma_sd,
            like.new_full((K,), -2 * math.log(self.noise_sd)),
        )

    def pack(self, weights: ShallowWeights) -> Tensor:
        """θ [K, P]."""
        parts = [weights.a, weights.beta, weights.gamma.flatten(1)]
        if self.variable:
            parts.append(weights.m[:, None])
        if self.learned:
            mu_beta, log_tau_beta, mu_gamma, factor, log_tau = weights.nu
            rows, columns = torch.tril_indices(self.columns, self.columns, device=factor.device)
            entries = factor[:, rows, columns]
            entries = torch.where(rows == columns, entries.abs().log(), entries)
            scalars = mu_beta[:, None], log_tau_beta[:, None], mu_gamma, entries, log_tau[:, None]
            parts += scalars
        return torch.cat(parts, 1)

    # Draws
    def draw_gamma(self, nu: UnitHyperparameters, generator: torch.Generator) -> Tensor:
        """γ_j ~ N(μ_γ, S_γ), [K, r]."""
        z = normal_like(nu.mu_gamma, generator)
        return (
            nu.mu_gamma
            + torch.linalg.solve_triangular(nu.factor.mT, z[..., None], upper=True)[..., 0]
        )

    def draw_hyperparameters(
        self, weights: ShallowWeights, squares: Tensor, rows: int, generator: torch.Generator
    ) -> UnitHyperparameters:
        """ν from its conditionals; squares [K] are ‖y − f‖² over the given number of rows."""
        d = weights.included
        m = weights.m
        c = self.shape
        nu = weights.nu
        tau_beta = nu.log_tau_beta.exp()
        precision = self.beta_sd**-2 + m * tau_beta
        mean = tau_beta * weights.beta.sum(1) / precision
        mu_beta = mean + precision.rsqrt() * normal_like(m, generator)
        away = (d * (weights.beta - mu_beta[:, None]).square()).sum(1)
        rate = 0.5 * (c * self.beta_sd**2 + away)
        log_tau_beta = log_gamma(0.5 * (c + m), rate, generator)
        Lambda = nu.factor @ nu.factor.mT
        unit = torch.eye(self.columns, dtype=m.dtype, device=m.device)
        root = torch.linalg.cholesky(self.gamma_sd**-2 * unit + m[:, None, None] * Lambda)
        shift = torch.cholesky_solve(Lambda @ weights.gamma.sum(1)[..., None], root)
        z = normal_like(shift, generator)
        mu_gamma = (shift + torch.linalg.solve_triangular(root.mT, z, upper=True))[..., 0]
        centred = d[..., None] * (weights.gamma - mu_gamma[:, None])
        wishart_rate = self.degrees * self.gamma_sd**2 * unit + centred.mT @ centred
        factor = wishart_factor(self.degrees + m, wishart_rate, generator)
        rate = 0.5 * (c * self.noise_sd**2 + squares)
        log_tau = log_gamma(0.5 * (c + rows), rate, generator)
        return UnitHyperparameters(mu_beta, log_tau_beta, mu_gamma, factor, log_tau)

    def sample(self, n: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """θ [n, P] from the prior."""
        M = self.units
        nu = self.start(like.new_empty(n, 1))
        empty = ShallowWeights(
            self.linear_sd * standard_normal((n, self.columns * self.linear), generator, like),
            like.new_zeros(n, M),
            like.new_zeros(n, M, self.columns),
            like.new_zeros(n),
            nu,
        )
        if self.learned:  # conditionals without units and rows are the prior
            nu = self.draw_hyperparameters(empty, like.new_zeros(n), 0, generator)
        m = like.new_full((n,), M)
        if self.variable:
            shares = self.log_units(like).exp().to(generator.device)
            m = torch.multinomial(shares, n, replacement=True, generator=generator).to(like)
        weights = empty._replace(m=m, nu=nu)
        d = weights.included
        z = standard_normal((n, M), generator, like)
        beta = d * (nu.mu_beta[:, None] + (-0.5 * nu.log_tau_beta).exp()[:, None] * z)
        gamma = torch.stack([self.draw_gamma(nu, generator) for _ in range(M)], 1)
        return self.pack(weights._replace(beta=beta, gamma=d[..., None] * gamma))

    # Densities
    def log_units(self, like: Tensor) -> Tensor:
        """log p(m), m = 0 … M: α^m (1 − α), and α^M for m = M, [M + 1]."""
        m = torch.arange(self.units + 1, dtype=like.dtype, device=like.device)
        stops = (m < self.units).to(m) * math.log1p(-self.continuation)
        return m * math.log(self.continuation) + stops

    def log_gamma_weights(self, gamma: Tensor, nu: UnitHyperparameters) -> Tensor:
        """log N(γ_j | μ_γ, S_γ): [K, M, r] -> [K, M]."""
        centred = (gamma - nu.mu_gamma[:, None]) @ nu.factor
        half = torch.linalg.diagonal(nu.factor).log().sum(1, keepdim=True)
        return half - 0.5 * centred.square().sum(2) - 0.5 * self.columns * LOG_2PI

    def log_density(self, weights: ShallowWeights) -> Tensor:
        """log p(θ) [K], with the Jacobians of the logarithms and of L."""
        d = weights.included
        nu = weights.nu
        a = weights.a / self.linear_sd
        value = -0.5 * a.square().sum(1) - a.shape[1] * (math.log(self.linear_sd) + 0.5 * LOG_2PI)
        centred = weights.beta - nu.mu_beta[:, None]
        log_tau_beta = nu.log_tau_beta[:, None]
        of_beta = 0.5 * (log_tau_beta - log_tau_beta.exp() * centred.square() - LOG_2PI)
        value = value + (d * (of_beta + self.log_gamma_weights(weights.gamma, nu))).sum(1)
        if self.variable:
            value = value + self.log_units(value)[weights.m.long()]
        return value + self.log_hyperprior(nu) if self.learned else value

    def log_hyperprior(self, nu: UnitHyperparameters) -> Tensor:
        """log p(ν) [K]."""
        half = 0.5 * self.shape
        r = self.columns
        c = self.degrees
        rate = c * self.gamma_sd**2  # of S_γ⁻¹ ~ Wishart(c_γ, (c_γ C_γ)⁻¹)
        centres = torch.cat([nu.mu_beta[:, None] / self.beta_sd, nu.mu_gamma / self.gamma_sd], 1)
        value = -0.5 * centres.square().sum(1) - 0.5 * (r + 1) * LOG_2PI
        value = value - math.log(self.beta_sd) - r * math.log(self.gamma_sd)
        value = value + log_gamma_density(nu.log_tau_beta, (half, half * self.beta_sd**2))
        value = value + log_gamma_density(nu.log_tau, (half, half * self.noise_sd**2))
        logs = torch.linalg.diagonal(nu.factor).log()  # log L_ii
        constant = 0.5 * c * r * math.log(rate / 2) - float(
            torch.mvlgamma(torch.tensor(0.5 * c, dtype=torch.float64), r)
        )
        wishart = (c - r - 1) * logs.sum(1) - 0.5 * rate * nu.factor.square().sum((1, 2)) + constant
        powers = r + 1 - torch.arange(r, device=logs.device)  # of Λ -> L -> log L_ii
        return value + wishart + r * math.log(2) + (powers * logs).sum(1)
