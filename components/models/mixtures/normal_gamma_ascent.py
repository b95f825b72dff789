"""Coordinate ascent of a normal mean and precision: mean field, and the exact posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities.mean_field import Factors
from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import standard_normal
from components.models.mixtures.normal_gamma_densities import (
    gamma_entropy,
    gauss_gamma,
    normal_gamma_log_density,
)


def square_loss(model: NormalGammaModule, batch: Rows, m: Tensor) -> Tensor:
    """Σ (x − m)² + κ(m − m_0)² [S] at m [S]."""
    return (batch.x[:, 0] - m[:, None]).square().sum(1) + model.kappa * (m - model.m).square()


@dataclass(frozen=True)
class NormalGammaModule:
    """θ = (μ, log τ) [K, 2]; parameters (μ, τ)."""

    m: float  # prior mean of μ
    kappa: float  # weight of the prior of μ, in rows
    a: float
    b: float
    rows: Tensor  # training rows [N, 1]
    names: tuple[str, ...] = ("mu", "tau")
    dim: int = 2
    blocks: tuple[str, ...] = ("mu", "tau")

    def constrain(self, theta: Tensor) -> Tensor:
        return torch.stack([theta[:, 0], theta[:, 1].exp()], 1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        tau = draw_gamma(self.rows.new_full((n,), self.a), generator) / self.b
        return torch.stack(
            [self.m + self._normal(n, generator) / (self.kappa * tau).sqrt(), tau.log()], 1
        )

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Starting points spread more widely than the posterior.

        Draws from a vague prior would be thousands of standard deviations away from the posterior.
        """
        m, kappa, a, b = self.exact(Rows(self.rows, 1.0))
        mu = m + 2 * (b / (kappa * a)) ** 0.5 * self._normal(n, generator)
        return torch.stack([mu, math.log(a / b) + self._normal(n, generator)], 1)

    def _normal(self, n: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n,), generator, self.rows)

    def log_likelihood(self, theta: Tensor, batch: Rows) -> Tensor:
        mu = theta[:, :1]
        log_tau = theta[:, 1:]
        return 0.5 * (log_tau - LOG_2PI - log_tau.exp() * (batch.x[:, 0] - mu).square())  # [K, B]

    def log_prior(self, theta: Tensor) -> Tensor:
        mu, log_tau = theta.unbind(1)
        normal = 0.5 * (
            math.log(self.kappa)
            + log_tau
            - LOG_2PI
            - self.kappa * log_tau.exp() * (mu - self.m).square()
        )
        gamma = (
            self.a * math.log(self.b)
            - math.lgamma(self.a)
            + self.a * log_tau
            - self.b * log_tau.exp()
        )
        return normal + gamma  # with the Jacobian τ of τ = exp(log τ)

    def exact(self, batch: Rows) -> tuple[float, float, float, float]:
        """m, κ, a, b of the posterior, which is also normal–gamma."""
        x = batch.x[:, 0]
        N = len(x)
        mean = float(x.mean())
        scatter = float((x - mean).square().sum())
        kappa = self.kappa + N
        b = self.b + 0.5 * (scatter + self.kappa * N / kappa * (mean - self.m) ** 2)
        return (self.kappa * self.m + N * mean) / kappa, kappa, self.a + 0.5 * N, b

    def draw_block(
        self, block: str, theta: Tensor, batch: Rows, generator: torch.Generator
    ) -> Tensor:
        """μ | τ, x ~ N(m_N, 1/(κ_N τ)), or τ | μ, x ~ Gamma(a + (N + 1)/2, b + ½ Σ (x − μ)² + ½ κ(μ
        − m)²)."""
        mu, log_tau = theta.unbind(1)
        x = batch.x[:, 0]
        if block == "mu":
            m, kappa, _, _ = self.exact(batch)
            mu = m + self._normal(len(theta), generator) / (kappa * log_tau.exp()).sqrt()
        else:
            loss = (x - mu[:, None]).square().sum(1) + self.kappa * (mu - self.m).square()
            shape = self.rows.new_full((len(theta),), self.a + 0.5 * (len(x) + 1))
            log_tau = (draw_gamma(shape, generator) / (self.b + 0.5 * loss)).log()
        return torch.stack([mu, log_tau], 1)

    def mean_field(self) -> NormalGammaAscent:
        """q(μ) q(τ)."""
        return NormalGammaAscent(self)

    def structured_field(self, joint: Sequence[str]) -> NormalGammaAscent | JointNormalGammaAscent:
        """q(μ, τ) if both parameters are joint, otherwise q(μ) q(τ).

        Raises ConfigMismatchError for an unknown parameter."""
        if unknown := sorted(set(joint) - {*self.names, "all"}):
            raise ConfigMismatchError(
                f"inference.joint: {unknown[0]} is not a parameter of normal_gamma; use mu and tau, or all"
            )
        is_joint = "all" in joint or set(joint) == set(self.names)
        return JointNormalGammaAscent(self) if is_joint else NormalGammaAscent(self)


def expected_log_joint(
    prior: NormalGammaModule, batch: Rows, a: Tensor, b: Tensor, loss: Tensor
) -> Tensor:
    """E log p(x, μ, τ) [S] under τ ~ Gamma(a, b), loss = E τ(Σ (x − μ)² + κ(μ − m_0)²)."""
    tau = a / b
    log_tau = a.digamma() - b.log()
    joint = 0.5 * (batch.n_rows + 1) * (log_tau - LOG_2PI) + 0.5 * math.log(prior.kappa)
    gamma = (
        prior.a * math.log(prior.b) - math.lgamma(prior.a) + (prior.a - 1) * log_tau - prior.b * tau
    )
    return joint - 0.5 * loss + gamma


@dataclass(frozen=True)
class NormalGammaAscent:
    """q(μ, τ) = N(μ | m, 1/λ) Gamma(τ | a, b); factors m, lambda, a, b [S].

    Source: Bishop (2006), eqs. (10.26) to (10.30); Murphy (2012), section 21.5.1."""

    model: NormalGammaModule

    def start(self, batch: Rows, n: int, generator: torch.Generator) -> Factors:
        """Initial factors at draws from the prior of τ."""
        tau = self.model.sample_prior(n, generator)[:, 1].exp()
        m, kappa, _, _ = self.model.exact(batch)
        a = torch.full_like(tau, self.model.a + 0.5 * (batch.n_rows + 1))
        return {"m": torch.full_like(tau, m), "lambda": kappa * tau, "a": a, "b": a / tau}

    def _loss(self, factors: Factors, batch: Rows) -> Tensor:
        """E[Σ (x − μ)² + κ(μ − m_0)²] [S]."""
        m = factors["m"]
        spread = 1 / factors["lambda"]
        count = batch.n_rows + self.model.kappa
        return square_loss(self.model, batch, m) + count * spread

    def cycle(self, factors: Factors, batch: Rows) -> Factors:
        m, kappa, _, _ = self.model.exact(batch)
        tau = factors["a"] / factors["b"]
        factors = factors | {"m": torch.full_like(tau, m), "lambda": kappa * tau}
        return factors | {"b": self.model.b + 0.5 * self._loss(factors, batch)}

    def objective(self, factors: Factors, batch: Rows) -> Tensor:
        a = factors["a"]
        b = factors["b"]
        joint = expected_log_joint(self.model, batch, a, b, a / b * self._loss(factors, batch))
        return joint + 0.5 * (1 + LOG_2PI - factors["lambda"].log()) + gamma_entropy(a, b)

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        mu = factors["m"][0] + self.model._normal(n, generator) / factors["lambda"][0].sqrt()
        tau = draw_gamma(factors["a"][:1].expand(n), generator) / factors["b"][0]
        return torch.stack([mu, tau.log()], 1)

    def log_density(self, factors: Factors, theta: Tensor) -> Tensor:
        m, precision, a, b = (factors[name][0] for name in ("m", "lambda", "a", "b"))
        return normal_gamma_log_density(theta, m, precision, a, b)

    def log_predictive(self, factors: Factors, batch: Rows) -> Tensor:
        """log ∫ N(x | μ, 1/τ) dq by quadrature over τ: given it, x ~ N(m, 1/τ + 1/λ)."""
        a = factors["a"]
        b = factors["b"]
        place, weight = gauss_gamma(a, b)  # [S, Q]
        variance = 1 / place + 1 / factors["lambda"][:, None]
        square = (batch.x[:, 0] - factors["m"][:, None]).square()  # [S, B]
        log_density = -0.5 * (
            LOG_2PI + variance.log()[..., None] + square[:, None] / variance[..., None]
        )
        return (weight.log()[..., None] + log_density).logsumexp(1)


@dataclass(frozen=True)
class JointNormalGammaAscent:
    """q(μ, τ) = N(μ | m, 1/(κτ)) Gamma(τ | a, b), one factor; factors m, kappa, a, b [S].

    The family contains the posterior, so one cycle reaches it, and the bound equals log p(x).

    Source: Murphy (2012), section 4.6.3.7; Bardenet (2021), section 5.2, structured mean field."""

    model: NormalGammaModule

    def start(self, batch: Rows, n: int, generator: torch.Generator) -> Factors:
        """Initial factors, which equal the prior."""
        prior = {"m": self.model.m, "kappa": self.model.kappa, "a": self.model.a, "b": self.model.b}
        return {name: batch.x.new_full((n,), value) for name, value in prior.items()}

    def cycle(self, factors: Factors, batch: Rows) -> Factors:
        values = zip(("m", "kappa", "a", "b"), self.model.exact(batch), strict=True)
        return {name: torch.full_like(factors["m"], value) for name, value in values}

    def objective(self, factors: Factors, batch: Rows) -> Tensor:
        m, kappa, a, b = (factors[name] for name in ("m", "kappa", "a", "b"))
        prior = self.model
        tau = a / b
        count = batch.n_rows + prior.kappa
        # E τ(μ − c)² = 1/κ + (m − c)² a/b
        loss = tau * square_loss(prior, batch, m) + count / kappa
        normal_entropy = 0.5 * (1 + LOG_2PI - kappa.log() - (a.digamma() - b.log()))
        joint = expected_log_joint(prior, batch, a, b, loss)
        return joint + normal_entropy + gamma_entropy(a, b)

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        tau = draw_gamma(factors["a"][:1].expand(n), generator) / factors["b"][0]
        z = self.model._normal(n, generator)
        return torch.stack([factors["m"][0] + z / (factors["kappa"][0] * tau).sqrt(), tau.log()], 1)

    def log_density(self, factors: Factors, theta: Tensor) -> Tensor:
        m, kappa, a, b = (factors[name][0] for name in ("m", "kappa", "a", "b"))
        return normal_gamma_log_density(theta, m, kappa * theta[:, 1].exp(), a, b)

    def log_predictive(self, factors: Factors, batch: Rows) -> Tensor:
        """Log density of Student's t with 2a degrees of freedom, location m and scale² b(κ +
        1)/(aκ)."""
        m, kappa, a, b = (factors[name][:, None] for name in ("m", "kappa", "a", "b"))
        scale = 2 * b * (kappa + 1) / kappa  # times a/ν, ν = 2a
        square = (batch.x[:, 0] - m).square() / scale
        constant = (a + 0.5).lgamma() - a.lgamma() - 0.5 * (math.pi * scale).log()
        return constant - (a + 0.5) * square.log1p()
