"""Linear regression with its conjugate prior."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities import CoordinateAscent, LinearSmoother, StructuredAscent
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_REAL_LABEL
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.conjugate_regression import Coefficients, coefficients
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import normal_like, standard_normal
from components.models.linear.design import (
    check_one_task,
    design,
    name_columns,
    predictor,
    prior_scales,
    select_labelled,
)
from components.models.linear.mean_field import BlockedLinearAscent, JointLinearAscent, LinearAscent
from components.problems.supervised import Supervised
from components.registry import register


class LinearRegressionModule(nn.Module):
    """Linear regression with θ = (β, log σ²) [K, P], or only β if σ² is known.

    The parameters are (β, σ²).
    """

    penalty: Tensor

    def __init__(
        self,
        problem: Supervised,
        penalty: Tensor,
        intercept: bool,
        noise: float | tuple[float, float],
    ):
        super().__init__()
        self.intercept = intercept
        self.n_coefficients = len(penalty)
        self.register_buffer("penalty", penalty)  # λ = prior precision in units of 1/σ² [D]
        self.noise = noise  # σ², or (a, b) of its InvGamma prior
        self.names = name_columns(problem.n_inputs, intercept) + ["sigma2"] * self.learns_noise
        self.dim = len(self.names)
        self.blocks = ["beta", "sigma2"] if self.learns_noise else ["beta"]

    @property
    def learns_noise(self) -> bool:
        return isinstance(self.noise, tuple)

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """β [K, D] and log σ² [K, 1]."""
        beta = theta[:, : self.n_coefficients]
        if isinstance(self.noise, tuple):
            return beta, theta[:, self.n_coefficients :]
        return beta, theta.new_full((len(theta), 1), math.log(self.noise))

    def constrain(self, theta: Tensor) -> Tensor:
        beta, log_noise = self.split(theta)
        return torch.cat([beta, log_noise.exp()], 1) if self.learns_noise else beta

    def _sigma2(self, a: float, b: Tensor, generator: torch.Generator) -> Tensor:
        """A draw of InvGamma(a, b) for each b [K]."""
        return b / draw_gamma(torch.full_like(b, a), generator)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        like = self.penalty
        noise = like.new_full((n,), 1.0 if isinstance(self.noise, tuple) else self.noise)
        if isinstance(self.noise, tuple):
            noise = self._sigma2(self.noise[0], self.noise[1] * noise, generator)
        z = standard_normal((n, len(like)), generator, like)
        beta = (noise.unsqueeze(1) / like).sqrt() * z
        return torch.cat([beta, noise.log().unsqueeze(1)], 1) if self.learns_noise else beta

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        beta, log_noise = self.split(theta)
        residual = torch.where(batch.mask[:, 0], batch.y[:, 0], 0.0) - predictor(
            beta, batch.x, self.intercept
        )  # [K, B]
        log_density = -0.5 * (LOG_2PI + log_noise + residual.square() * (-log_noise).exp())
        return torch.where(batch.mask[:, 0], log_density, 0.0)

    def log_prior(self, theta: Tensor) -> Tensor:
        beta, log_noise = self.split(theta)
        # Σ λ β²/σ² [K, 1]
        square = (self.penalty * beta.square()).sum(1, keepdim=True) * (-log_noise).exp()
        constant = self.penalty.log().sum() - self.n_coefficients * LOG_2PI
        value = 0.5 * (constant - self.n_coefficients * log_noise - square)
        if isinstance(self.noise, tuple):
            a, b = self.noise
            # InvGamma(σ² | a, b) times the Jacobian σ² of σ² = exp(log σ²)
            value = (
                value + a * math.log(b) - math.lgamma(a) - a * log_noise - b * (-log_noise).exp()
            )
        return value.squeeze(1)

    def gaussian_prior(self) -> Tensor | None:
        """s = σ λ^−½ if σ² is known."""
        return None if isinstance(self.noise, tuple) else (self.noise / self.penalty).sqrt()

    def predictive(self, theta: Tensor, x: Tensor) -> GaussianMixture:
        """N(β_k x, σ_k²), k = 1 … K."""
        beta, log_noise = self.split(theta)
        mu = predictor(beta, x, self.intercept).unsqueeze(-1)  # [K, B, 1]
        return GaussianMixture(mu, log_noise.exp().unsqueeze(-1).expand_as(mu))

    # Closed forms
    def coefficients(self, batch: Batch) -> Coefficients:
        """β | σ², y for all rows."""
        return coefficients(*select_labelled(batch, self.intercept), self.penalty)

    def draw_block(
        self, block: str, theta: Tensor, batch: Batch, generator: torch.Generator
    ) -> Tensor:
        """β | σ², y ~ N(m, σ²Λ⁻¹), or σ² | β, y ~ InvGamma(a + (N + D)/2, b + (‖y − Xβ‖² + Σ
        λβ²)/2)."""
        beta, log_noise = self.split(theta)
        if block == "beta":
            posterior = self.coefficients(batch)
            z = normal_like(beta, generator)
            unit = torch.linalg.solve_triangular(
                posterior.L.T, z.T, upper=True
            ).T  # N(0, Λ⁻¹) [K, D]
            beta = posterior.m + (0.5 * log_noise).exp() * unit
        else:
            assert isinstance(self.noise, tuple)
            X, y = select_labelled(batch, self.intercept)
            loss = (y - beta @ X.T).square().sum(1) + (self.penalty * beta.square()).sum(1)  # [K]
            a = self.noise[0] + 0.5 * (len(y) + self.n_coefficients)
            log_noise = self._sigma2(a, self.noise[1] + 0.5 * loss, generator).log().unsqueeze(1)
        return torch.cat([beta, log_noise], 1) if self.learns_noise else beta

    @property
    def known_noise(self) -> float:
        """The known σ²."""
        assert not isinstance(self.noise, tuple)
        return float(self.noise)

    def smoother(self, x: Tensor) -> Tensor:
        """S = XΛ⁻¹Xᵀ [N, N]: Xβ | y, σ² ~ N(S y, σ² S)."""
        X = design(x, self.intercept)
        return X @ coefficients(X, x.new_zeros(len(x)), self.penalty).covariance @ X.T

    def condition(self, x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [M] of the line at ``at`` [M, D] given y [N] at x [N, D], for known
        σ²."""
        posterior = coefficients(design(x, self.intercept), y, self.penalty)
        Z = design(at, self.intercept)
        return Z @ posterior.m, self.known_noise * (Z @ posterior.covariance * Z).sum(1)

    def exponent(self, smoothness: float) -> float:
        """−½ for a straight line, and 0 for any other function, to which it does not converge.

        Source: Ghosal & van der Vaart (2017), on parametric models."""
        return -0.5 if math.isinf(smoothness) else 0.0

    def log_evidence(self, batch: Batch) -> Tensor:
        """log p(y | X), the marginal likelihood of all rows []."""
        return self.coefficients(batch).log_evidence_under(self.noise)

    def select(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return select_labelled(batch, self.intercept)

    def mean_field(self) -> LinearAscent:
        """q(β) q(σ²), σ² unknown."""
        assert isinstance(self.noise, tuple)
        return LinearAscent(self.select, self.penalty, self.noise)

    def structured_field(self, joint: Sequence[str]) -> LinearAscent | JointLinearAscent:
        """q(β, σ²), σ² unknown, if all are ``joint``, else q(β_I) Π q(β_i) q(σ²).

        Raises ConfigMismatchError for an unknown coefficient."""
        assert isinstance(self.noise, tuple)
        if "all" in joint or set(joint) == set(self.names):
            return JointLinearAscent(self.select, self.penalty, self.noise)
        coefficient_names = self.names[: self.n_coefficients]
        if unknown := sorted(set(joint) - set(coefficient_names)):
            raise ConfigMismatchError(
                f"inference.joint: {unknown[0]} is not a coefficient; use some of "
                f"{', '.join(coefficient_names)}, or all, which includes sigma2"
            )
        places = tuple(coefficient_names.index(name) for name in dict.fromkeys(joint))
        return BlockedLinearAscent(self.select, self.penalty, self.noise, places)


@register("model", "linear_regression")
class LinearRegression(Model[Supervised, LinearRegressionModule]):
    """Bayesian linear regression with the conjugate prior of coefficients and noise variance.

    y ~ N(β_0 + xᵀβ, σ²), β_j | σ² ~ N(0, σ² s²), β_0 | σ² ~ N(0, σ² s_0²), σ² ~ InvGamma(a, b) or
    known.  Samplers use (β, log σ²), with the Jacobian σ²; a Gibbs sampler draws the blocks beta
    and sigma2.  The posterior is Normal–inverse-Gamma, so its moments and the evidence p(y | X) are
    known; mean field uses q(β) q(σ²), structured mean field q(β, σ²) or blocks of β.

    Raises ConfigMismatchError for a dataset of several tasks.

    Source: Murphy (2012), sections 7.6.1 and 7.6.3; Bardenet (2021), section 1.3."""

    requires = ONE_REAL_LABEL
    offers_where = {
        CoordinateAscent: "noise=learned",
        StructuredAscent: "noise=learned",
        LinearSmoother: "noise=1.0",
    }

    prior_scale: PositiveFloat
    intercept_scale: PositiveFloat | None
    noise: LearnableScale
    noise_shape: PositiveFloat
    noise_scale: PositiveFloat

    def is_enabled(self, capability: type) -> bool:
        """A smoother where the noise is known, coordinate ascent where it is learned."""
        return (capability is LinearSmoother) == (self.noise != "learned")

    def build(self, problem: Supervised, rng: Rng) -> LinearRegressionModule:
        check_one_task(problem, self.name)
        noise = (self.noise_shape, self.noise_scale) if self.noise == "learned" else self.noise
        penalty = prior_scales(problem, self.prior_scale, self.intercept_scale) ** -2
        return LinearRegressionModule(problem, penalty, self.intercept_scale is not None, noise)
