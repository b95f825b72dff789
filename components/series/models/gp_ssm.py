"""Gaussian-process state-space model of a series of numbers, with the transition integrated out."""

from __future__ import annotations

import math

import numpy as np
import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import PRODUCT_SHAPES, Shape, kernel
from components.registry import register
from components.series.models.families import NumberSeriesModel
from components.series.models.unknown import Law, PositivePrior, Priors, UnknownParameters
from components.series.sequence import Sequence

NODES = 20  # of Gauss–Hermite quadrature over an uncertain state
SPREAD = 0.3  # sd of initial values around the prior medians, in log units


class TransitionPriors(Priors):
    """Priors of standard deviations and of the lengthscale, which product kernels do not use."""

    lengthscale: PositivePrior
    signal_sd: PositivePrior
    transition_sd: PositivePrior
    observation_sd: PositivePrior


def log_standard(e: Tensor) -> Tensor:
    """log N(e; 0, 1), elementwise."""
    return -0.5 * (e.square() + LOG_2PI)


class GPStateSpace(UnknownParameters, nn.Module):
    """``LogJoint`` of the scales and states of a Gaussian-process state-space model.

    It is also ``ForecastsSeries`` and ``WarmStart``.  θ [K, P + T + 1] holds the logarithms of the
    P scales, then x_0 … x_T.
    """

    center: Tensor

    def __init__(self, y: Tensor, settings: GPSSM):
        super().__init__()
        self.settings = settings
        laws: dict[str, Law] = settings.unknown.given_priors
        if settings.kernel in PRODUCT_SHAPES:
            laws.pop("lengthscale")
        self.declare(laws, y)
        times = len(y)
        states = torch.cat([y[:1], y]).nan_to_num(0.0)  # x_0 is not observed
        self.register_buffer("center", torch.cat([self.medians, states]))
        self.n_scales = len(laws)
        self.names = [*laws, *(f"x/{t}" for t in range(times + 1))]
        self.dim = len(self.names)

    def _split(self, theta: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Scales by name [K], and states [K, T + 1]."""
        return self.by_name(theta[:, : self.n_scales]), theta[:, self.n_scales :]

    def constrain(self, theta: Tensor) -> Tensor:
        scales = super().constrain(theta[:, : self.n_scales])
        return torch.cat([scales, theta[:, self.n_scales :]], 1)

    def _cov(self, scales: dict[str, Tensor], a: Tensor, b: Tensor) -> Tensor:
        """Covariances of f at a [K, N] and b [K, M]: [K, N, M]."""
        variance = scales["signal_sd"].square()
        length = scales.get("lengthscale", torch.ones_like(variance)).unsqueeze(1)
        K = kernel(a.unsqueeze(2), b.unsqueeze(2), length, variance, self.settings.kernel)
        return K + self.settings.offset_sd**2

    def _noisy(self, scales: dict[str, Tensor], x: Tensor) -> Tensor:
        """Covariance of f(x_t) + N(0, q) at states x [K, T]: [K, T, T]."""
        noise = scales["transition_sd"].square() + self.settings.jitter
        return self._cov(scales, x, x) + noise[:, None, None] * torch.eye(x.shape[1]).to(x)

    def log_prior(self, theta: Tensor) -> Tensor:
        """log p(scales) + log N(x_0; 0, s_0²) + log N(x_1:T; 0, K(x_0:T−1) + q I) [K]; −∞ where the
        covariance has no factor."""
        scales, x = self._split(theta)
        L, failed = torch.linalg.cholesky_ex(self._noisy(scales, x[:, :-1]))
        e = torch.linalg.solve_triangular(L, x[:, 1:, None], upper=False)[..., 0]
        total = super().log_prior(theta[:, : self.n_scales])
        total = total - half_log_det(L)
        whitened = torch.cat([x[:, :1] / self.settings.initial_sd, e], 1)
        total = total + log_standard(whitened).sum(1)
        total = total - math.log(self.settings.initial_sd)
        return torch.where(failed > 0, -torch.inf, total)

    def log_likelihood(self, theta: Tensor, series: Series) -> Tensor:
        """log p(y_1:T | x_1:T) [K, 1]; only the first T times of a longer series."""
        scales, x = self._split(theta)
        y = series.y[0, : x.shape[1] - 1, 0]
        observed = ~y.isnan()
        sd = scales["observation_sd"].unsqueeze(1)
        each = log_standard((y - x[:, 1:])[:, observed] / sd) - sd.log()
        return each.sum(1, keepdim=True)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws of scales, then of a trajectory, state by state [n, P + T + 1]."""
        z = standard_normal((n, self.dim - self.n_scales), generator, self.center)
        head = self.draw_prior(n, generator)
        scales = self.by_name(head)
        x = self.settings.initial_sd * z[:, :1]
        for t in range(1, z.shape[1]):
            L = torch.linalg.cholesky(self._noisy(scales, x))  # earlier rows stay
            x = torch.cat([x, (L[:, -1] * z[:, 1 : t + 1]).sum(1, keepdim=True)], 1)
        return torch.cat([head, x], 1)

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Scales near the medians of their priors, states near the observations [n, P + T + 1]."""
        sd = torch.full_like(self.center, SPREAD)
        sd[self.n_scales :] = self.medians[-1].exp()  # of the observations
        return self.center + sd * standard_normal((n, self.dim), generator, self.center)

    def transition(self, theta: Tensor, x: Tensor) -> GaussianMixture:
        """f(x) given each θ [K, P + T + 1], x [K or 1, N]: [K, N, 1].

        k(x)ᵀ K̃⁻¹ x_1:T and k(x, x) − k(x)ᵀ K̃⁻¹ k(x), K̃ = K(x_0:T−1) + q I."""
        scales, states = self._split(theta)
        x = x.expand(len(theta), -1)
        L = torch.linalg.cholesky(self._noisy(scales, states[:, :-1]))
        right = torch.cat([self._cov(scales, states[:, :-1], x), states[:, 1:, None]], 2)
        A, e = torch.linalg.solve_triangular(L, right, upper=False).split([x.shape[1], 1], 2)
        prior = torch.linalg.diagonal(self._cov(scales, x, x))
        variance = (prior - A.square().sum(1)).clamp_min(0)
        return GaussianMixture(A.mT @ e, variance.unsqueeze(2))

    def forecast(self, theta: Tensor, series: Series, horizon: int) -> GaussianMixture:
        """y_{T+1} … y_{T+H} after a series that may be longer than the states of θ [K, H, 1].

        The first time after the states is exact given θ.  Later times have the mean and variance of
        E[f(x)] and E[f(x)²] + q by quadrature over a Gaussian x, updated by each observation as in
        a Kalman filter; f is not updated.

        Source: Deisenroth et al. (2009), their moments by quadrature."""
        scales, states = self._split(theta)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        z, w = theta.new_tensor(np.stack([nodes, weights / weights.sum()]))
        q, r = (scales[name].square() for name in ("transition_sd", "observation_sd"))
        m = states[:, -1]
        v = torch.zeros_like(m)
        further = series.y[0, states.shape[1] - 1 :, 0]
        moments = []
        for y in [*further.tolist(), *[math.nan] * horizon]:
            f = self.transition(theta, m.unsqueeze(1) + v.sqrt().unsqueeze(1) * z)
            mu = f.mu[..., 0]
            var = f.v[..., 0]
            m = mu @ w
            v = (mu - m.unsqueeze(1)).square() @ w + var @ w + q
            moments.append(torch.stack([m, v + r], 1))
            if not math.isnan(y):
                gain = v / (v + r)
                m = m + gain * (y - m)
                v = (1 - gain) * v
        out = torch.stack(moments[-horizon:], 1)
        return GaussianMixture(out[..., :1], out[..., 1:])


@register("model", "gp_ssm")
class GPSSM(NumberSeriesModel[GPStateSpace]):
    """Gaussian-process state-space model: an unknown transition of a hidden state.

        x_0 ~ N(0, s_0²),   x_t = f(x_{t−1}) + N(0, q),   y_t = x_t + N(0, r),   t = 1 … T
        f ~ GP(0, σ² κ(x, x') + s_b²)

    f is integrated out, so the states have the density

        p(x_0:T) = N(x_0; 0, s_0²) N(x_1:T; 0, K(x_0:T−1) + q I),

    the product of one-step predictions of a Gaussian process, which is not Gaussian in x_0:T
    because K depends on it.  Any method for a log joint draws states and scales together, θ [K, P +
    T + 1], at O(T³) a gradient; f given a draw is the regression of x_1:T on x_0:T−1.  ``linear``
    makes f(x) = a x + b with a ~ N(0, σ²), b ~ N(0, s_b²): a linear Gaussian model with unknown
    coefficients.  The observation is the state itself, because any other map could be absorbed into
    f.  A missing observation is skipped.  The series is single and univariate, log p(y | θ) [K, 1].

    Raises ConfigMismatchError for several series, multivariate series, or class numbers.

    Source: Frigola et al. (2013); Turner et al. (2010); Boustati (2021), section
    2.1.2.2.
    """

    kernel: Shape
    offset_sd: NonNegativeFloat
    initial_sd: PositiveFloat
    jitter: PositiveFloat
    unknown: TransitionPriors

    def build(self, problem: Sequence, rng: Rng) -> GPStateSpace:
        problem.check_single(f"model={self.name}")
        return GPStateSpace(problem.observations[0, :, 0], self)
