"""Shallow network with a hierarchical prior and a variable number of hidden units."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_REAL_LABEL
from components.contracts.roles import BetweenZeroAndOne, Model, NonEmptyList
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.standard_draws import normal_like, standard_uniform
from components.models.linear.design import check_one_task, design, select_labelled
from components.models.networks.shallow.hierarchical_prior import ShallowPrior, ShallowWeights
from components.models.networks.shallow.unit_moves import Marginal, choose, jump, walk
from components.problems.supervised import Supervised
from components.registry import register


class ShallowModule(nn.Module):
    """f(x) = x'a + Σ_j d_j β_j ψ(x'γ_j), ψ the logistic function, x preceded by a constant."""

    scales: Tensor  # standard deviations of proposal steps, c C_γ^½

    def __init__(self, prior: ShallowPrior, like: Tensor, scales: list[float], jumps: int):
        super().__init__()
        self.prior = prior
        self.register_buffer("scales", prior.gamma_sd * like.new_tensor(scales))
        self.jumps = jumps
        self.dim = sum(prior.pieces)
        self.blocks = ["weights"] + ["units"] * prior.variable + ["hyperparameters"] * prior.learned
        numbers = [f"p_{m}_units" for m in range(prior.units + 1)]
        learned = ["mu_beta", "sigma_beta", "sigma"]
        # weights are unnamed, because units are exchangeable
        self.names = (["units", *numbers] if prior.variable else []) + learned * prior.learned

    def constrain(self, theta: Tensor) -> Tensor:
        """m, indicators of m = 0 … M, and those of μ_β, σ_β, σ that are unknown; otherwise θ."""
        if not self.names:
            return theta
        weights = self.prior.unpack(theta)
        m = weights.m[:, None]
        nu = weights.nu
        parts = []
        if self.prior.variable:
            numbers = torch.arange(self.prior.units + 1, device=m.device)
            parts += [m, (m == numbers).to(m)]
        if self.prior.learned:
            deviations = (-0.5 * torch.stack([nu.log_tau_beta, nu.log_tau], 1)).exp()
            parts += [nu.mu_beta[:, None], deviations]
        return torch.cat(parts, 1)

    def unpack(self, theta: Tensor) -> ShallowWeights:
        """Weights of θ [K, P].

        Raises ConfigMismatchError if the number of units is not an integer, because another sampler
        moved it."""
        weights = self.prior.unpack(theta)
        m = weights.m
        is_integer = (m == m.round()) & (m >= 0) & (m <= self.prior.units)
        if (theta.requires_grad and self.prior.variable) or not is_integer.all():
            raise ConfigMismatchError(
                "model.architecture=variable: the number of hidden units is discrete; "
                "use inference=gibbs or model.architecture=fixed"
            )
        return weights

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.prior.sample(n, generator, self.scales)

    def log_prior(self, theta: Tensor) -> Tensor:
        return self.prior.log_density(self.unpack(theta))

    def columns(self, weights: ShallowWeights, X: Tensor) -> Tensor:
        """Z [K, B, D]: x' if there is a linear term, and d_j ψ(x'γ_j)."""
        hidden = (X @ weights.gamma.mT).sigmoid() * weights.included[:, None]
        return (
            torch.cat([X.expand(len(hidden), -1, -1), hidden], 2) if self.prior.linear else hidden
        )

    def function(self, weights: ShallowWeights, X: Tensor) -> Tensor:
        """f [K, B] at X [B, r]."""
        coefficients = torch.cat([weights.a, weights.beta], 1)
        return (self.columns(weights, X) @ coefficients[..., None])[..., 0]

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        weights = self.unpack(theta)
        log_tau = weights.nu.log_tau[:, None]
        f = self.function(weights, design(batch.x, True))
        residual = torch.where(batch.mask[:, 0], batch.y[:, 0], 0.0) - f
        log_density = 0.5 * (log_tau - LOG_2PI - log_tau.exp() * residual.square())
        return torch.where(batch.mask[:, 0], log_density, 0.0)

    def predictive(self, theta: Tensor, x: Tensor) -> GaussianMixture:
        """N(f_k(x), σ_k²), k = 1 … K, at x [B, D]."""
        weights = self.unpack(theta)
        mu = self.function(weights, design(x, True))[..., None]  # [K, B, 1]
        return GaussianMixture(mu, (-weights.nu.log_tau).exp()[:, None, None].expand_as(mu))

    # Gibbs
    def rows(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Labelled rows: X [N, r], y [N]."""
        return select_labelled(batch, True)

    def coefficients(self, weights: ShallowWeights) -> tuple[Tensor, Tensor]:
        """Prior mean and standard deviations of (a, β), [K, D] each."""
        zero = torch.zeros_like(weights.a)
        ones = torch.ones_like(weights.beta)
        deviations = (-0.5 * weights.nu.log_tau_beta).exp()[:, None] * ones
        mean = torch.cat([zero, weights.nu.mu_beta[:, None] * ones], 1)
        return mean, torch.cat([zero + self.prior.linear_sd, deviations], 1)

    def marginal(self, weights: ShallowWeights, X: Tensor, y: Tensor) -> Marginal:
        """y | γ, ν ~ N(Z mean, σ² I + Z S² Zᵀ): X [N, r], y [N] or [K, N]."""
        mean, s = self.coefficients(weights)
        tau = weights.nu.log_tau.exp()
        Z = self.columns(weights, X)
        e = y - (Z @ mean[..., None])[..., 0]  # [K, N]
        scaled = Z * s[:, None]
        unit = torch.eye(Z.shape[2], dtype=Z.dtype, device=Z.device)
        root = torch.linalg.cholesky(unit + tau[:, None, None] * (scaled.mT @ scaled))
        pull = tau[:, None, None] * (scaled.mT @ e[..., None])
        away = torch.linalg.solve_triangular(root, pull, upper=False)[..., 0]
        constant = 0.5 * e.shape[1] * (weights.nu.log_tau - LOG_2PI)
        logs = half_log_det(root)
        squares = tau * e.square().sum(1) - away.square().sum(1)
        return Marginal(constant - logs - 0.5 * squares, root, away)

    def draw_coefficients(
        self, weights: ShallowWeights, fit: Marginal, generator: torch.Generator
    ) -> Tensor:
        """θ with (a, β) ~ p(a, β | γ, ν, y), a multivariate normal."""
        mean, s = self.coefficients(weights)
        z = fit.away + normal_like(fit.away, generator)
        u = torch.linalg.solve_triangular(fit.root.mT, z[..., None], upper=True)[..., 0]
        a, beta = (mean + s * u).split([weights.a.shape[1], self.prior.units], 1)
        return self.prior.pack(weights._replace(a=a, beta=beta * weights.included))

    def draw_block(
        self, block: str, theta: Tensor, batch: Batch, generator: torch.Generator
    ) -> Tensor:
        weights = self.prior.unpack(theta)
        X, y = self.rows(batch)
        if block == "hyperparameters":
            squares = (y - self.function(weights, X)).square().sum(1)
            nu = self.prior.draw_hyperparameters(weights, squares, y.shape[-1], generator)
            return self.prior.pack(weights._replace(nu=nu))
        fit = self.marginal(weights, X, y)
        for j in range(self.jumps if block == "units" else self.prior.units):
            if block == "units":
                candidate, ratio = jump(self.prior, weights, generator)
            else:
                candidate, ratio = walk(self.prior, self.scales, weights, j, generator)
            theirs = self.marginal(candidate, X, y)
            u = standard_uniform((len(theta),), generator, theta)
            accept = u.log() < theirs.value - fit.value + ratio
            fit = choose(accept, theirs, fit)
            weights = weights._replace(
                gamma=torch.where(accept[:, None, None], candidate.gamma, weights.gamma),
                m=torch.where(accept, candidate.m, weights.m),
            )
        return self.draw_coefficients(weights, fit, generator)


@register("model", "shallow_network")
class ShallowNetwork(Model[Supervised, ShallowModule]):
    """Shallow network with a hierarchical prior, sampled with its output weights integrated out.

        y = x'a + Σ_{j ≤ m} β_j ψ(x'γ_j) + ε,  ε ~ N(0, σ²),  ψ(η) = 1/(1 + e^−η)
        a ~ N(0, σ_a²),  β_j ~ N(μ_β, σ_β²),  γ_j ~ N(μ_γ, S_γ)
        μ_β ~ N(0, C_β),  σ_β⁻² ~ Gamma(c/2, c C_β/2),  σ⁻² ~ Gamma(c/2, c C/2)
        μ_γ ~ N(0, C_γ),  S_γ⁻¹ ~ Wishart(c_γ, (c_γ C_γ)⁻¹),  p(m) ∝ α^m (1 − α)^[m < m*]

    A sweep of ``inference=gibbs`` is Algorithm 1.1: each γ_j by Metropolis under p(y | γ, ν) p(γ |
    ν), with (a, β) integrated out; then (a, β) | γ, ν, y; ν | β, γ, y.  With ``architecture``
    variable a unit is born from the prior or one of the m dies, accepted with probability 1 ∧ p(y |
    γ', ν) p(m') / (p(y | γ, ν) p(m)), a reversible jump; the scores p(m | y) are the means of
    ``p_0_units`` ….  As printed, the algorithm omits p(γ̃_j)/p(γ_j), and it draws β before γ, so
    that ν is conditioned on a β for the old γ: both break the invariance of the posterior.

    Raises ConfigMismatchError for several tasks, and for a sampler that moves m continuously.

    Source: Gallego (2021), section 1.3.2; Müller and Rios Insua (1998); Green (1995); van Dyk
    and Park (2008), on the order."""

    requires = ONE_REAL_LABEL

    units: PositiveInt
    architecture: Literal["fixed", "variable"]
    continuation: BetweenZeroAndOne
    linear: bool
    linear_sd: PositiveFloat
    beta_sd: PositiveFloat
    gamma_sd: PositiveFloat
    noise_sd: PositiveFloat
    hyperparameters: Literal["learned", "known"]
    shape: PositiveFloat
    degrees: PositiveFloat | None
    proposal_scales: NonEmptyList[PositiveFloat]
    jumps: PositiveInt

    def build(self, problem: Supervised, rng: Rng) -> ShallowModule:
        check_one_task(problem, self.name)
        r = problem.n_inputs + 1
        if self.degrees is not None and self.degrees <= r - 1:
            raise ConfigMismatchError(
                f"model.degrees={self.degrees:g}: must exceed the number of inputs, {r - 1}; raise it, or set it to null"
            )
        prior = ShallowPrior(
            units=self.units,
            columns=r,
            linear=self.linear,
            variable=self.architecture == "variable",
            learned=self.hyperparameters == "learned",
            continuation=self.continuation,
            linear_sd=self.linear_sd,
            beta_sd=self.beta_sd,
            gamma_sd=self.gamma_sd,
            noise_sd=self.noise_sd,
            shape=self.shape,
            degrees=r + 2.0 if self.degrees is None else self.degrees,
        )
        return ShallowModule(prior, problem.train.x, self.proposal_scales, self.jumps)
