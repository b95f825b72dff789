"""Mean field of regressions: Gaussian coefficients, and quadratic bounds of the likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from components.contracts.capabilities.mean_field import Factors
from components.contracts.problems import Batch
from components.maths.cholesky import LOG_2PI
from components.maths.conjugate_regression import coefficients
from components.maths.exponential.dirichlet import draw_gamma
from components.models.linear.normal_factors import (
    NormalFactor,
    divergence,
    invert_positive_definite,
    normal_draws,
    normal_log_density,
    scatter_starts,
)

# design matrix [N, D] and labels [N] of the labelled rows
Select = Callable[[Batch], tuple[Tensor, Tensor]]


def expected_log_joint(
    penalty: Tensor, noise: tuple[float, float], rows: int, a: Tensor, b: Tensor, loss: Tensor
) -> Tensor:
    """E log p(y, β, σ²) [S] of n rows under σ² ~ InvGamma(a, b), with λ [D], the prior's
    (a_0, b_0) and loss = E (‖y − Xβ‖² + Σ λβ²)/σ²."""
    a_0, b_0 = noise
    log_noise = b.log() - a.digamma()  # E log σ²
    joint = -0.5 * ((rows + len(penalty)) * (LOG_2PI + log_noise) + loss)
    joint = joint + 0.5 * penalty.log().sum() + a_0 * math.log(b_0) - math.lgamma(a_0)
    return joint - (a_0 + 1) * log_noise - b_0 * (a / b)


def penalised_loss(penalty: Tensor, m: Tensor, X: Tensor, y: Tensor) -> Tensor:
    """‖y − Xm‖² + Σ λm² [S] at m [S, D]."""
    return (y - m @ X.T).square().sum(1) + (penalty * m.square()).sum(1)


@dataclass(frozen=True)
class LinearAscent:
    """q(β) q(σ²) = N(β | m, V) InvGamma(σ² | a, b) of y ~ N(Xβ, σ²), β | σ² ~ N(0, σ² diag(λ)⁻¹);
    factors m, V, a, b.

    Source: Murphy (2012), section 21.5.2, with the conjugate prior; Bishop (2006), section 10.3."""

    select: Select
    penalty: Tensor  # λ [D]
    noise: tuple[float, float]  # of the InvGamma prior

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        """Initial factors, with σ² drawn from its prior."""
        X, y = self.select(batch)
        posterior = coefficients(X, y, self.penalty)
        shape = self.penalty.new_full((n,), self.noise[0])
        noise = self.noise[1] / draw_gamma(shape, generator)
        a = torch.full_like(noise, self.noise[0] + 0.5 * (len(y) + X.shape[1]))
        m = posterior.m.expand(n, -1)
        return {"m": m, "V": noise[:, None, None] * posterior.covariance, "a": a, "b": a * noise}

    def _loss(self, factors: Factors, batch: Batch) -> Tensor:
        """E[‖y − Xβ‖² + Σ λβ²] [S]."""
        X, y = self.select(batch)
        gram = X.T @ X + self.penalty.diag()
        m = factors["m"]
        return penalised_loss(self.penalty, m, X, y) + (gram * factors["V"]).sum((1, 2))

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        posterior = coefficients(*self.select(batch), self.penalty)
        noise = factors["b"] / factors["a"]
        factors = factors | {
            "m": posterior.m.expand_as(factors["m"]),
            "V": noise[:, None, None] * posterior.covariance,
        }
        return factors | {"b": self.noise[1] + 0.5 * self._loss(factors, batch)}

    def objective(self, factors: Factors, batch: Batch) -> Tensor:
        a, b = factors["a"], factors["b"]
        N = len(self.select(batch)[1])
        D = len(self.penalty)
        loss = a / b * self._loss(factors, batch)
        joint = expected_log_joint(self.penalty, self.noise, N, a, b, loss)
        entropy = (
            0.5 * (torch.logdet(factors["V"]) + D * (1 + LOG_2PI))
            + a
            + b.log()
            + a.lgamma()
            - (1 + a) * a.digamma()
        )
        return joint + entropy

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        beta = normal_draws(factors, n, generator)
        noise = factors["b"][0] / draw_gamma(factors["a"][:1].expand(n), generator)
        return torch.cat([beta, noise.log()[:, None]], 1)

    def log_density(self, factors: Factors, theta: Tensor) -> Tensor:
        a = factors["a"][0]
        b = factors["b"][0]
        log_noise = theta[:, -1]
        gamma = a * b.log() - a.lgamma() - a * log_noise - b * (-log_noise).exp()
        return normal_log_density(factors, theta[:, :-1]) + gamma


@dataclass(frozen=True)
class BlockedLinearAscent(LinearAscent):
    """q(β_I) Π_{i ∉ I} q(β_i) q(σ²): Gaussian blocks of coefficients; factors as in
    ``LinearAscent``, with V zero between blocks.

        V_B = (E 1/σ²)⁻¹ (Λ_BB)⁻¹,   m_B = Λ_BB⁻¹ ((Xᵀy)_B − Λ_{B,−B} m_{−B}),   Λ = XᵀX + diag(λ)

    for each block B in turn; m converges to the posterior mean, and V_B is the covariance given the
    other coefficients.

    Source: Bishop (2006), eqs. (10.12), (10.13) for blocks; Bardenet (2021), section 5.2."""

    joint: tuple[int, ...]  # I, indices of the joint coefficients

    @property
    def blocks(self) -> list[list[int]]:
        rest = [[j] for j in range(len(self.penalty)) if j not in self.joint]
        return [list(self.joint), *rest]

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        """Initial factors, with σ² drawn from its prior and m = 0."""
        factors = super().start(batch, n, generator)
        V = torch.zeros_like(factors["V"])
        gram = self._gram(batch)
        for block in self.blocks:
            indices = torch.tensor(block, device=gram.device)
            inverse = invert_positive_definite(gram[indices][:, indices])
            V[:, indices[:, None], indices] = (factors["b"] / factors["a"])[:, None, None] * inverse
        return factors | {"m": torch.zeros_like(factors["m"]), "V": V}

    def _gram(self, batch: Batch) -> Tensor:
        X, _ = self.select(batch)
        return X.T @ X + self.penalty.diag()

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        X, y = self.select(batch)
        gram = self._gram(batch)
        noise = factors["b"] / factors["a"]
        m = factors["m"].clone()
        V = torch.zeros_like(factors["V"])
        for block in self.blocks:
            indices = torch.tensor(block, device=gram.device)
            block_gram = gram[indices][:, indices]
            inverse = invert_positive_definite(block_gram)
            others = m @ gram[:, indices] - m[:, indices] @ block_gram
            m[:, indices] = ((X.T @ y)[indices] - others) @ inverse
            V[:, indices[:, None], indices] = noise[:, None, None] * inverse
        factors = factors | {"m": m, "V": V}
        return factors | {"b": self.noise[1] + 0.5 * self._loss(factors, batch)}


@dataclass(frozen=True)
class JointLinearAscent:
    """q(β, σ²) = N(β | m, σ² V) InvGamma(σ² | a, b), one factor; factors m, V, a, b.

    The family contains the posterior, so one cycle reaches it, and the bound equals log p(y).

    Source: Murphy (2012), section 7.6.3; Bardenet (2021), section 5.2, structured mean field."""

    select: Select
    penalty: Tensor  # λ [D]
    noise: tuple[float, float]  # of the InvGamma prior

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        """Initial factors, which equal the prior."""
        like = self.penalty
        a, b = (like.new_full((n,), value) for value in self.noise)
        m = torch.zeros_like(like).expand(n, -1)
        return {"m": m, "V": like.reciprocal().diag().expand(n, -1, -1), "a": a, "b": b}

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        posterior = coefficients(*self.select(batch), self.penalty)
        a, b = posterior.noise_posterior(*self.noise)
        return {
            "m": posterior.m.expand_as(factors["m"]),
            "V": posterior.covariance.expand_as(factors["V"]),
            "a": torch.full_like(factors["a"], a),
            "b": torch.full_like(factors["b"], float(b)),
        }

    def objective(self, factors: Factors, batch: Batch) -> Tensor:
        m, V, a, b = (factors[name] for name in ("m", "V", "a", "b"))
        X, y = self.select(batch)
        log_noise = b.log() - a.digamma()  # E log σ²
        gram = X.T @ X + self.penalty.diag()
        square = penalised_loss(self.penalty, m, X, y)
        loss = a / b * square + (gram * V).sum((1, 2))  # E[(‖y − Xβ‖² + Σ λβ²)/σ²]
        joint = expected_log_joint(self.penalty, self.noise, len(y), a, b, loss)
        normal_entropy = 0.5 * (torch.logdet(V) + len(self.penalty) * (1 + LOG_2PI + log_noise))
        return joint + normal_entropy + a + b.log() + a.lgamma() - (1 + a) * a.digamma()

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        noise = factors["b"][0] / draw_gamma(factors["a"][:1].expand(n), generator)
        centred = normal_draws(factors | {"m": torch.zeros_like(factors["m"])}, n, generator)
        beta = factors["m"][0] + noise.sqrt()[:, None] * centred
        return torch.cat([beta, noise.log()[:, None]], 1)

    def log_density(self, factors: Factors, theta: Tensor) -> Tensor:
        a = factors["a"][0]
        b = factors["b"][0]
        log_noise = theta[:, -1]
        unit = (theta[:, :-1] - factors["m"][0]) * (-0.5 * log_noise).exp()[:, None]
        at_zero = factors | {"m": torch.zeros_like(factors["m"])}
        normal = normal_log_density(at_zero, unit) - 0.5 * len(self.penalty) * log_noise
        return normal + a * b.log() - a.lgamma() - a * log_noise - b * (-log_noise).exp()


@dataclass(frozen=True)
class LogisticAscent(NormalFactor):
    """q(β) = N(m, V) of a logistic regression under Jaakkola and Jordan's bound; factors m, V, and
    ξ_n at its optimum.

        log σ(u) ≥ log σ(ξ) + (u − ξ)/2 − λ(ξ)(u² − ξ²),  λ(ξ) = tanh(ξ/2)/4ξ,  ξ_n² = E(x_nᵀβ)²
        V⁻¹ = diag(s)⁻² + 2 Σ λ(ξ_n) x_n x_nᵀ,  m = V Σ (y_n − ½) x_n

    The objective is below the evidence lower bound of this q, and never decreases.

    Source: Jaakkola and Jordan (2000); Bishop (2006), eqs. (10.156), (10.157), (10.163)."""

    select: Select
    scales: Tensor  # s [D]

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        """Initial factors: m at 0 for the first start and at draws from the prior for the others, V
        the prior covariance."""
        return {
            "m": scatter_starts(self.scales, n, generator),
            "V": self.scales.square().diag().expand(n, -1, -1),
        }

    def _xi(self, factors: Factors, X: Tensor) -> Tensor:
        """√E(x_nᵀβ)² [S, N]."""
        spread = ((X @ factors["V"]) * X).sum(2)
        return (spread + (factors["m"] @ X.T).square()).sqrt()

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        X, y = self.select(batch)
        xi = self._xi(factors, X).clamp_min(1e-6)
        weight = (0.5 * xi).tanh() / (4 * xi)  # λ(ξ), ⅛ at 0
        precision = self.scales.square().reciprocal().diag() + 2 * (weight[:, :, None] * X).mT @ X
        V = invert_positive_definite(precision)
        return {"m": V @ (X.T @ (y.to(X.dtype) - 0.5)), "V": V}

    def objective(self, factors: Factors, batch: Batch) -> Tensor:
        X, y = self.select(batch)
        xi = self._xi(factors, X)
        of_rows = F.logsigmoid(xi) - 0.5 * xi + (y.to(X.dtype) - 0.5) * (factors["m"] @ X.T)
        return of_rows.sum(1) - divergence(factors, self.scales)
