"""Linear regressions with Gaussian noise of unknown scale: six of posteriordb's posteriors,
including an autoregression."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.datasets.named_target import NamedVariables, Variable
from components.datasets.posteriordb_densities.scale_priors import (
    ScalePrior,
    flat,
    half_cauchy,
    half_normal,
)
from components.maths.bijectors import POSITIVE
from components.maths.exponential.standard_draws import standard_normal

WIDER = 2.0  # spread of the starts in standard errors of the least-squares estimate


class GaussianRegression(NamedVariables):
    """y ~ N(Xβ, σ²I), β_j ~ N(m_j, 1/λ_j) or flat (λ_j = 0), σ ~ prior;  θ = (β, log σ), β [D].

    The data enter by β̂, R and the smallest residual sum of squares, where X = QR and ‖y − Xβ‖² =
    ‖R(β − β̂)‖² + S: the cost of a density does not depend on N."""

    def __init__(
        self,
        coefficients: tuple[Variable, ...],
        X: Tensor,
        y: Tensor,
        scale_prior: ScalePrior,
        prior: tuple[list[float], list[float]] | None = None,
    ):
        """``prior``: means and standard deviations of β; None for a flat prior."""
        Q, R = torch.linalg.qr(X)
        mean, sd = prior if prior is not None else ([0.0] * X.shape[1], [math.inf] * X.shape[1])
        self.variables = (*coefficients, Variable("sigma", bijector=POSITIVE))
        self.like = X
        self.n = len(y)
        self.R = R  # [D, D] upper triangular
        # least squares [D]
        self.beta_hat = torch.linalg.solve_triangular(
            R, (Q.T @ y).unsqueeze(1), upper=True
        ).squeeze(1)
        self.residual = (y - X @ self.beta_hat).square().sum()  # S, []
        self.prior_mean = X.new_tensor(mean)  # m [D]
        self.prior_precision = X.new_tensor(sd) ** -2  # λ [D]
        self.is_flat = prior is None  # a flat prior of β takes a sixth of a gradient's time
        self.scale_prior = scale_prior

    def log_density(self, theta: Tensor) -> Tensor:
        beta = theta[:, :-1]
        log_scale = theta[:, -1]
        # ‖y − Xβ‖² [K]
        squares = ((beta - self.beta_hat) @ self.R.T).square().sum(1) + self.residual
        value = -self.n * log_scale - 0.5 * squares * (-2 * log_scale).exp()
        if not self.is_flat:
            distance = (beta - self.prior_mean).square() * self.prior_precision
            value = value - 0.5 * distance.sum(1)
        # the last: log-Jacobian
        return value + self.scale_prior(log_scale) + log_scale

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """β̂ + 2σ̂ R⁻¹z and log σ̂ + ½z, z ~ N(0, I)."""
        z = standard_normal((n, self.dim), generator, self.like)
        log_scale = 0.5 * (self.residual / self.n).log()
        away = torch.linalg.solve_triangular(self.R, z[:, :-1].T, upper=True).T
        return torch.cat(
            [self.beta_hat + WIDER * log_scale.exp() * away, log_scale + 0.5 * z[:, -1:]], 1
        )

    def exact_moments(self) -> tuple[Tensor, Tensor]:
        """E[β, σ] and E[β², σ²] [D+1] each: β given σ is Gaussian, and σ is integrated out by the
        trapezium rule in log σ.

        With A = RᵀR/σ² + Λ: β | σ, y ~ N(β̂ + A⁻¹Λ(m − β̂), A⁻¹),
        p(σ | y) ∝ p(σ) σ^{−n} |A|^{−½} exp(−S/2σ² − ½ (m − β̂)ᵀΛ A⁻¹ RᵀR (m − β̂)/σ²)."""
        centre = 0.5 * (self.residual / self.n).log()
        width = 12 / self.n**0.5 + 6 / self.n
        log_scale = torch.linspace(float(centre - width), float(centre + width), 2001).to(self.R)
        G = self.R.T @ self.R
        Lambda = self.prior_precision.diag()
        d = self.prior_mean - self.beta_hat
        inverse = (-2 * log_scale).exp()[:, None, None]  # 1/σ² [M, 1, 1]
        A = G * inverse + Lambda  # [M, D, D]
        shift = torch.linalg.solve(A, Lambda @ d)  # A⁻¹Λ(m − β̂) [M, D]
        covariance = torch.linalg.inv(A)
        log_weight = (
            self.scale_prior(log_scale)
            + log_scale  # dσ = σ d log σ
            - self.n * log_scale
            - 0.5 * torch.linalg.slogdet(A)[1]
            - 0.5 * inverse[:, 0, 0] * (self.residual + shift @ G @ d)
        )
        weight = log_weight.softmax(0)
        mean = self.beta_hat + shift  # of β given σ [M, D]
        second = mean.square() + covariance.diagonal(dim1=1, dim2=2)
        scale = log_scale.exp()
        return (
            torch.cat([weight @ mean, (weight @ scale)[None]]),
            torch.cat([weight @ second, (weight @ scale.square())[None]]),
        )


def blr(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """sblri-blr: β ~ N(0, 10²), σ ~ N⁺(0, 10²), y ~ N(Xβ, σ²)."""
    X, y = (like.new_tensor(data[key]) for key in ("X", "y"))
    D = X.shape[1]
    prior = ([0.0] * D, [10.0] * D)
    return GaussianRegression((Variable("beta", D),), X, y, half_normal(10.0), prior)


def kidscore_momiq(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """kidiq-kidscore_momiq: β flat, σ ~ half-Cauchy(2.5), kid_score ~ N(β_1 + β_2 mom_iq, σ²)."""
    iq, y = (like.new_tensor(data[key]) for key in ("mom_iq", "kid_score"))
    X = torch.stack([torch.ones_like(iq), iq], 1)
    return GaussianRegression((Variable("beta", 2),), X, y, half_cauchy(2.5))


def kilpisjarvi(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """kilpisjarvi_mod-kilpisjarvi: α ~ N(pmualpha, psalpha²), β ~ N(pmubeta, psbeta²), σ flat, y ~
    N(α + βx, σ²)."""
    x, y = (like.new_tensor(data[key]) for key in ("x", "y"))
    X = torch.stack([torch.ones_like(x), x], 1)
    prior = ([data["pmualpha"], data["pmubeta"]], [data["psalpha"], data["psbeta"]])
    return GaussianRegression((Variable("alpha"), Variable("beta")), X, y, flat, prior)


def logmesquite(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """mesquite-logmesquite: the log weight is regressed on the logs of five sizes and on the
    group, with flat priors of β and σ.
    """
    keys = ("diam1", "diam2", "canopy_height", "total_height", "density", "group", "weight")
    *sizes, group, weight = (like.new_tensor(data[key]) for key in keys)
    X = torch.stack([torch.ones_like(group), *(size.log() for size in sizes), group], 1)
    return GaussianRegression((Variable("beta", 7),), X, weight.log(), flat)


def nes(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """nes2000-nes: β and σ flat, partyid7 on ideology, race, age in four classes, education, gender
    and income."""
    keys = ("real_ideo", "race_adj", "age_discrete", "educ1", "gender", "income", "partyid7")
    ideology, race, age, education, gender, income, y = (like.new_tensor(data[key]) for key in keys)
    ages = [(age == k).to(y) for k in (2, 3, 4)]
    X = torch.stack([torch.ones_like(y), ideology, race, *ages, education, gender, income], 1)
    return GaussianRegression((Variable("beta", 9),), X, y, flat)


def autoregression(data: dict[str, Any], like: Tensor) -> GaussianRegression:
    """arK-arK: α, β_k ~ N(0, 10²), σ ~ half-Cauchy(2.5), y_t ~ N(α + Σ_k β_k y_{t−k}, σ²), t >
    K."""
    y = like.new_tensor(data["y"])
    K = data["K"]
    lags = [y[K - k : len(y) - k] for k in range(1, K + 1)]
    X = torch.stack([torch.ones_like(y[K:]), *lags], 1)
    prior = ([0.0] * (K + 1), [10.0] * (K + 1))
    variables = (Variable("alpha"), Variable("beta", K))
    return GaussianRegression(variables, X, y[K:], half_cauchy(2.5), prior)
