"""Dynamic linear models of a series of numbers, built from blocks, with the states integrated
out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeFloat
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture
from components.contracts.roles import AtLeastTwo
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI, half_log_det
from components.registry import register
from components.series.models.families import NumberSeriesModel
from components.series.models.linear_filter import (
    LinearSystem,
    StateMoments,
    filter_series,
    forecast,
)
from components.series.models.unknown import PositivePrior, Priors, UnknownParameters
from components.series.sequence import Sequence

LONGEST = 500  # times up to which a Cholesky factor (T³/3) is faster than T steps of a filter

NUMBERS = 3 * 10**7  # total entries of K covariances [T, T], a quarter of a gigabyte


@dataclass(frozen=True)
class SeriesCovariance:
    """x_1:T ~ N(μ, U Uᵀ + Σ_p v_p B_p) of a linear system with states integrated out, in float64.

    Let h_k = F Gᵏ and let M_j be the lower triangular Toeplitz matrix of (h_0)_j, (h_1)_j,
    … The noise of state j, of variance q_j, contributes q_j M_j M_jᵀ, the noise of the
    observations contributes r I, and z_0 contributes U with rows s_0 h_t.
    """

    mean: Tensor  # μ [T]
    start: Tensor  # U [T, d]
    # B [1 + P, T, T]: first for the observations, then for the states in the order of their
    # variances
    parts: Tensor

    @classmethod
    def of(cls, system: LinearSystem, shared: list[int], times: int) -> SeriesCovariance:
        """``shared`` has the sizes of consecutive groups of states with a common variance."""
        system = system.like(system.F.new_empty(0, dtype=torch.float64))
        state = system.m0
        mean = []
        h = [system.F]
        for _ in range(times):
            state = system.G @ state + system.c
            mean.append(system.F @ state + system.a)
            h.append(h[-1] @ system.G)
        effects = torch.stack(h)  # h_k [T + 1, d]
        time = torch.arange(times, device=effects.device)
        lag = time.unsqueeze(1) - time  # k of the noise of time u in x_t [T, T]
        M = torch.where((lag >= 0).unsqueeze(2), effects[lag.clamp_min(0)], 0.0)  # [T, T, d]
        parts = [torch.einsum("tuj,suj->ts", block, block) for block in M.split(shared, 2)]
        eye = torch.eye(times, dtype=torch.float64, device=effects.device)
        return cls(torch.stack(mean), system.s0 * effects[1:], torch.stack([eye, *parts]))

    def log_density(self, variances: Tensor, x: Tensor, seen: Tensor) -> tuple[Tensor, bool]:
        """log p(x_seen) [K] of variances [K, 1 + P], x [T], seen [T] bool; and True if every
        covariance has a Cholesky factor.

            V = Σ v B = L Lᵀ,  W = L⁻¹ U,  e = L⁻¹(x − μ),  I + Wᵀ W = R Rᵀ,
            −2 log p = eᵀe − ‖R⁻¹ Wᵀ e‖² + 2 Σ log L_tt + 2 Σ log R_jj + T log 2π

        U is kept separate, because a diffuse first state would swamp small variances in V + U Uᵀ.

        Source: Woodbury's identity and the matrix determinant lemma."""
        parts = self.parts[:, seen][:, :, seen]
        start = self.start[seen]
        V = torch.einsum("kp,pst->kst", variances.double(), parts)  # [K, n, n]
        L, failed = torch.linalg.cholesky_ex(V)
        right = torch.cat([start, (x.double() - self.mean)[seen].unsqueeze(1)], 1)
        W, e = torch.linalg.solve_triangular(
            L, right.expand(len(V), -1, -1), upper=False
        ).tensor_split([-1], 2)
        R = torch.linalg.cholesky_ex(
            torch.eye(start.shape[1], dtype=V.dtype, device=V.device) + W.mT @ W
        )[0]
        spared = torch.linalg.solve_triangular(R, W.mT @ e, upper=False)
        square = e.square().sum((1, 2)) - spared.square().sum((1, 2))
        log_det = sum(2 * half_log_det(factor) for factor in (L, R))
        value = -0.5 * (square + log_det + len(start) * LOG_2PI)
        return value.to(variances), not bool(failed.any())


Trend = Literal["linear", "level", "autoregressive"]

NOISES: dict[Trend, list[str]] = {  # of a trend's states, in their order
    "linear": ["level_sd", "slope_sd"],
    "level": ["level_sd"],
    "autoregressive": ["transition_sd"],
}

COEFFICIENT = 0.5

CONSTANT = 1.0

LOADING = 3.0

OFFSET = 0.5  # of the autoregression in appendix 2.B.1


class NoisePriors(Priors):
    """Priors of standard deviations; priors of unused noises are ignored."""

    observation_sd: PositivePrior
    level_sd: PositivePrior
    slope_sd: PositivePrior
    seasonal_sd: PositivePrior
    transition_sd: PositivePrior


def system(trend: Trend, period: int | None, initial_sd: float) -> LinearSystem:
    """Matrices of a trend and an optional season, in float64."""
    size = len(NOISES[trend])
    simple = trend == "autoregressive"
    ones = torch.ones(size, size, dtype=torch.float64)
    # of level and slope: level + slope, slope
    blocks = [COEFFICIENT * ones if simple else ones.triu()]
    if period is not None:
        # z_1 ← z_p and z_j ← z_{j−1}, as appendix 2.B.1 prints it for p = 12
        blocks.append(torch.eye(period, dtype=torch.float64).roll(1, 0))
    G = torch.block_diag(*blocks)
    c = torch.zeros_like(G[0])
    F = torch.zeros_like(G[0])
    F[0], c[0] = (LOADING, CONSTANT) if simple else (1.0, 0.0)
    if period is not None:
        F[size] = 1.0  # (1, 0, …, 0) of the season
    return LinearSystem(
        G, c, F, F.new_tensor(OFFSET if simple else 0.0), torch.zeros_like(F), initial_sd
    )


class DynamicLinear(UnknownParameters, nn.Module):
    """``LogJoint`` of a dynamic linear model's standard deviations.

    It is also ``ForecastsSeries`` and ``WarmStart``. θ [K, P] holds their logarithms, in
    the order of ``names``; the observations' standard deviation comes first, then the states' ones.
    """

    def __init__(
        self,
        made: LinearSystem,
        noises: dict[str, int],
        priors: NoisePriors,
        start: Literal["prior", "median"],
    ):
        super().__init__()
        self.system = made
        self.noises = noises
        self.start = start
        noise_priors = priors.given_priors
        self.declare({name: noise_priors[name] for name in ("observation_sd", *noises)}, made.m0)
        self.names = self.parameter_names
        self.dim = 1 + len(noises)
        self._covariances: dict[int, SeriesCovariance] = {}  # by the number of times

    sample_prior = UnknownParameters.draw_prior

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws of the prior, or its medians [n, P]."""
        return (
            self.draw_prior(n, generator)
            if self.start == "prior"
            else self.medians.expand(n, -1).clone()
        )

    def _variances(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """r [K], and q of each state [K, d]."""
        variances = (2 * theta).exp()
        repeats = torch.tensor(list(self.noises.values()), device=theta.device)
        return variances[:, 0], variances[:, 1:].repeat_interleave(repeats, 1)

    def _filter(self, theta: Tensor, series: Series) -> tuple[Tensor, StateMoments, Tensor, Tensor]:
        """log p(x_1:T | θ) [K], the moments of z_T, and the variances."""
        r, q = self._variances(theta)
        x = series.y[0, :, 0]
        is_observed = ~x.isnan()
        value, last = filter_series(self.system, q, r, x, is_observed.tolist())
        return value, last, r, q

    def log_likelihood(self, theta: Tensor, series: Series) -> Tensor:
        """log ∫ p(x, z | θ) dz [K, 1]: by one Cholesky factor for short series; by the much slower
        filter for long ones, or if a covariance has no factor."""
        x = series.y[0, :, 0]
        is_observed = ~x.isnan()
        times = len(x)
        if bool(is_observed.any()) and times <= LONGEST and len(theta) * times**2 <= NUMBERS:
            if times not in self._covariances:
                self._covariances[times] = SeriesCovariance.of(
                    self.system, list(self.noises.values()), times
                )
            value, is_definite = self._covariances[times].log_density(
                (2 * theta).exp(), x, is_observed
            )
            if is_definite:
                return value.unsqueeze(1)
        return self._filter(theta, series)[0].unsqueeze(1)

    def forecast(self, theta: Tensor, series: Series, horizon: int) -> GaussianMixture:
        _, last, r, q = self._filter(theta, series)
        mean, variance = forecast(self.system, q, r, last, horizon)
        return GaussianMixture(mean.unsqueeze(2), variance.unsqueeze(2))  # [K, H, 1]


@register("model", "dlm")
class Dlm(NumberSeriesModel[DynamicLinear]):
    """Dynamic linear model: a trend and a season with unknown variances.

        x_t = F z_t + a + N(0, σ²_obs),   z_t = G z_{t−1} + c + N(0, diag σ²),
        z_0 ~ N(0, s₀² I),   t = 1 … T

    ``linear``: level ← level + slope, slope ← slope, x is the level; ``level``: without
    slope. A period p adds p effects, z_1 ← z_p and z_j ← z_{j−1}, and x includes the first.
    ``autoregressive``: z_t = ½ z_{t−1} + 1, x = 3 z + ½. The states z are integrated out for K
    parameter sets at a time: by the Kalman filter, or, for up to 500 times, from the covariance of
    x, which is linear in the variances. θ [K, P] are the logarithms of the standard deviations, and
    the prior has the Jacobian. A large s₀ is a diffuse first state, s₀ = 0 starts from z_0 = 0. A
    missing observation is skipped.  The series is single and univariate, log p(x | θ) [K, 1].

    Raises ConfigMismatchError for several series, multivariate series, or class numbers.

    Source: Gallego (2021), appendix 2.B.1; West and Harrison (1997).
    """

    trend: Trend
    period: AtLeastTwo | None
    initial_sd: NonNegativeFloat
    start: Literal["prior", "median"]
    unknown: NoisePriors

    def build(self, problem: Sequence, rng: Rng) -> DynamicLinear:
        y = problem.observations
        problem.check_single(f"model={self.name}")
        noises = dict.fromkeys(NOISES[self.trend], 1)
        if self.period is not None:
            noises["seasonal_sd"] = self.period
        linear_system = system(self.trend, self.period, self.initial_sd).like(y)
        return DynamicLinear(linear_system, noises, self.unknown, self.start)
