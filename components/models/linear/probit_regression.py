"""Probit regression for binary labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.capabilities.mean_field import Factors
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_BINARY_LABEL
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.models.linear.design import (
    check_one_task,
    name_columns,
    predictor,
    prior_scales,
    select_labelled,
)
from components.models.linear.normal_factors import (
    NormalFactor,
    divergence,
    invert_positive_definite,
    scatter_starts,
)
from components.problems.supervised import Supervised
from components.registry import register


def log_share(f: Tensor) -> Tensor:
    """log Φ(f), the log probability that N(f, 1) is positive."""
    return torch.special.log_ndtr(f)


def truncated_normal_mean(f: Tensor) -> Tensor:
    """E[z | z > 0] for z ~ N(f, 1): f + φ(f)/Φ(f)."""
    return f + (-0.5 * (f.square() + LOG_2PI) - log_share(f)).exp()


def draw_truncated_normal(f: Tensor, generator: torch.Generator) -> Tensor:
    """z ~ N(f, 1) given z > 0: f − Φ⁻¹(u Φ(f)) with u uniform; for tiny Φ(f), z f ~ −Exp(1) up to
    O(1/f²)."""
    u = standard_uniform(f.shape, generator, f)
    u = u.clamp_min(torch.finfo(f.dtype).tiny)
    is_tail = f < -5.0 if f.dtype == torch.float32 else f < -30.0
    near = f - torch.special.ndtri((log_share(f) + u.log()).exp())
    return torch.where(is_tail, u.log() / f.clamp_max(-1.0), near.clamp_min(0))


def signs(y: Tensor, like: Tensor) -> Tensor:
    """±1 for labels 0 and 1."""
    return (2 * y - 1).to(like.dtype)


@dataclass(frozen=True)
class ProbitModule:
    """θ = β [K, D], intercept first."""

    scales: Tensor  # s [D]
    intercept: bool
    names: list[str]
    blocks: tuple[str, ...] = ("beta",)

    @property
    def dim(self) -> int:
        return len(self.scales)

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def _normal(self, n: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n, self.dim), generator, self.scales)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.scales * self._normal(n, generator)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        f = predictor(theta, batch.x, self.intercept) * signs(batch.y[:, 0], theta)
        return torch.where(batch.mask[:, 0], log_share(f), 0.0)  # [K, B]

    def log_prior(self, theta: Tensor) -> Tensor:
        constant = self.scales.log().sum() + 0.5 * self.dim * LOG_2PI
        return -0.5 * (theta / self.scales).square().sum(1) - constant

    def gaussian_prior(self) -> Tensor:
        return self.scales

    def predictive(self, theta: Tensor, x: Tensor) -> Categorical:
        """Mixture over θ [K, D] of the class probabilities at x [B, D]."""
        f = predictor(theta, x, self.intercept)
        # [K, B, 1, 2]
        return Categorical(torch.stack([log_share(-f), log_share(f)], -1)[:, :, None])

    # Given the augmentation
    def select(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return select_labelled(batch, self.intercept)

    def covariance(self, X: Tensor, penalised: bool = True) -> Tensor:
        """Covariance (XᵀX + diag(s)⁻²)⁻¹ of β given z; without the prior if not ``penalised``."""
        return invert_positive_definite(
            X.T @ X + penalised * self.scales.square().reciprocal().diag()
        )

    def draw_block(
        self, block: str, theta: Tensor, batch: Batch, generator: torch.Generator
    ) -> Tensor:
        """z_n ~ N(x_nᵀβ, 1) on the side of its label, then β ~ N(V Xᵀz, V), which leaves the
        posterior of β invariant."""
        X, y = self.select(batch)
        sign = signs(y, X)
        z = sign * draw_truncated_normal(sign * (theta @ X.T), generator)  # [K, N]
        V = self.covariance(X)
        return z @ X @ V + self._normal(len(theta), generator) @ torch.linalg.cholesky(V).T

    def mean_field(self) -> ProbitAscent:
        return ProbitAscent(self)

    def point_masses(self, penalised: bool) -> ProbitExpectation:
        return ProbitExpectation(self, penalised)


@dataclass(frozen=True)
class ProbitAscent(NormalFactor):
    """q(z) q(β) = Π_n N(z_n | x_nᵀm, 1; on the side of y_n) N(β | m, V); factors m, V.

        V = (XᵀX + diag(s)⁻²)⁻¹,   m ← V Xᵀ E[z],   L = Σ_n [log Φ(±x_nᵀm) − ½ x_nᵀV x_n] − KL(N(m, V) ‖ N(0, diag s²))

    Source: Albert and Chib (1993); Murphy (2012), section 21.8.3 for the bound; Bardenet (2021),
    section 5.2."""

    model: ProbitModule

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        """Initial factors: m at 0 for the first start, at draws from the prior for the others."""
        V = self.model.covariance(self.model.select(batch)[0])
        return {"m": scatter_starts(self.model.scales, n, generator), "V": V.expand(n, -1, -1)}

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        X, y = self.model.select(batch)
        sign = signs(y, X)
        mean = sign * truncated_normal_mean(sign * (factors["m"] @ X.T))  # E z [S, N]
        return factors | {"m": mean @ X @ factors["V"][0]}  # every start has the same V

    def objective(self, factors: Factors, batch: Batch) -> Tensor:
        X, y = self.model.select(batch)
        of_rows = log_share(signs(y, X) * (factors["m"] @ X.T)) - 0.5 * (
            (X @ factors["V"]) * X
        ).sum(2)
        return of_rows.sum(1) - divergence(factors, self.model.scales)


@dataclass(frozen=True)
class ProbitExpectation:
    """Expectation maximisation: q(β) a point mass; factor beta [S, D].

        β ← (XᵀX + diag(s)⁻²)⁻¹ Xᵀ E[z | β, y]; without diag(s)⁻² if not penalised

    Source: Albert and Chib (1993); Murphy (2012), section 11.4.6; Bardenet (2021), section
    5.2.3."""

    model: ProbitModule
    penalised: bool

    def start(self, batch: Batch, n: int, generator: torch.Generator) -> Factors:
        return {"beta": scatter_starts(self.model.scales, n, generator)}

    def cycle(self, factors: Factors, batch: Batch) -> Factors:
        X, y = self.model.select(batch)
        sign = signs(y, X)
        mean = sign * truncated_normal_mean(sign * (factors["beta"] @ X.T))
        return {"beta": mean @ X @ self.model.covariance(X, self.penalised)}

    def objective(self, factors: Factors, batch: Batch) -> Tensor:
        X, y = self.model.select(batch)
        value = log_share(signs(y, X) * (factors["beta"] @ X.T)).sum(1)
        return value + self.model.log_prior(factors["beta"]) if self.penalised else value

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        return factors["beta"][:1].expand(n, -1)


@register("model", "probit_regression")
class ProbitRegression(Model[Supervised, ProbitModule]):
    """Bayesian probit regression for binary labels.

    p(y = 1 | x) = Φ(β_0 + xᵀβ), the probability that z ~ N(β_0 + xᵀβ, 1) is positive; β_j ~ N(0,
    s²), β_0 ~ N(0, s_0²).  Given z the posterior of β is Gaussian: a Gibbs sampler draws z and β in
    turn, mean field uses q(z) q(β), and expectation maximisation is its limit with a point mass for
    β.  The mean of the mean-field posterior is the mode of the posterior.

    Raises ConfigMismatchError for a dataset of several tasks.

    Source: Albert and Chib (1993); Murphy (2012), sections 9.4 and 21.8.3."""

    requires = ONE_BINARY_LABEL

    prior_scale: PositiveFloat
    intercept_scale: PositiveFloat | None

    def build(self, problem: Supervised, rng: Rng) -> ProbitModule:
        check_one_task(problem, self.name)
        intercept = self.intercept_scale is not None
        scales = prior_scales(problem, self.prior_scale, self.intercept_scale)
        return ProbitModule(scales, intercept, name_columns(problem.n_inputs, intercept))
