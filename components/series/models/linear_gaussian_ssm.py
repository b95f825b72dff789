"""The linear Gaussian state-space model, with the true parameters of the data."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LinearGaussian
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.particles.draws import standard_normal, standard_normal_like
from components.registry import register
from components.series.linear_gaussian import SHAPES
from components.series.sequence import Sequence


def factor(matrix: Tensor, name: str) -> Tensor:
    """Lower Cholesky factor of a covariance, or of each of several [..., d, d]."""
    lower, failed = torch.linalg.cholesky_ex(matrix)
    if failed.any():
        raise NumericalError(f"Cholesky of {name} failed in {matrix.dtype}", "set dtype=float64")
    return lower


def log_normal(deviation: Tensor, lower: Tensor) -> Tensor:
    """log N(deviation | 0, L Lᵀ) for deviations [..., d] -> [...]."""
    whitened = torch.linalg.solve_triangular(lower, deviation.mT, upper=False)  # [..., d, N]
    constant = log_determinant(lower) + 0.5 * lower.shape[-1] * LOG_2PI
    return -0.5 * whitened.square().sum(-2) - constant


def log_determinant(lower: Tensor) -> Tensor:
    """log |L| of a lower Cholesky factor [d, d] -> [].

    For each replicate's factor, [R, d, d] -> [R, 1], which broadcasts against particles.
    """
    value = half_log_det(lower)
    return value.unsqueeze(-1) if value.dim() else value


def linear_gaussian_system(problem: Sequence, model: str) -> LinearGaussian:
    """The linear Gaussian system that generated the data.

    Raises:
        ConfigMismatchError: the data have another source, or an unknown one.
    """
    if not isinstance(problem.system, LinearGaussian):
        raise ConfigMismatchError(
            f"model={model}: needs the parameters of a linear Gaussian system, which dataset={problem.name} does not provide"
        )
    return problem.system


class LinearGaussianModule(nn.Module):
    """Linear Gaussian system, with all quantities in closed form.

    It implements ``StateSpace``, ``LinearGaussian``, ``AdditiveGaussian`` and more. The locally
    optimal proposal is N(m, P) with K = Q Hᵀ (H Q Hᵀ + Σ)⁻¹, m = A x + K(y − H A x), P = (I
    − K H) Q; the predictive likelihood is N(y | H A x, H Q Hᵀ + Σ). Q and Σ are shared by
    all replicates, or [R, d, d] for each. Particles are stored coordinate by coordinate, because
    batched small products are slow.
    """

    A: Tensor
    Q: Tensor
    H: Tensor
    Sigma: Tensor
    m0: Tensor
    P0: Tensor
    L_Q: Tensor
    L_P0: Tensor
    whiten: Tensor
    log_det: Tensor
    gain: Tensor
    L_S: Tensor
    L_P: Tensor

    def __init__(self, system: LinearGaussian):
        super().__init__()
        for name in SHAPES:
            self.register_buffer(name, getattr(system, name).clone())
        self.register_buffer("L_Q", factor(self.Q, "Q"))
        self.register_buffer("L_P0", factor(self.P0, "P_0"))
        L = factor(self.Sigma, "Σ")
        self.register_buffer("whiten", torch.linalg.inv(L))  # Σ^−½ [dy, dy]
        self.register_buffer("log_det", 2 * log_determinant(L))  # log |Σ|, [] or [R, 1]
        S = self.H @ self.Q @ self.H.T + self.Sigma
        gain = torch.linalg.solve(S, self.H @ self.Q).mT  # K [dx, dy]
        keep = torch.eye(self.Q.shape[-1]).to(self.Q) - gain @ self.H
        self.register_buffer("gain", gain)
        self.register_buffer("L_S", factor(S, "H Q Hᵀ + Σ"))
        self.register_buffer(
            "L_P", factor(keep @ self.Q @ keep.mT + gain @ self.Sigma @ gain.mT, "the proposal")
        )

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        dx = len(self.m0)
        z = standard_normal((*shape, dx), generator, self.m0)
        return self.m0 + z.to(self.m0.device) @ self.L_P0.T  # [R, N, dx]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        # eq. (6.16)  # [R, N, dx]
        return (self.A @ x.mT + self.L_Q @ standard_normal_like(x, generator).mT).mT

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        return (self.A @ x.mT).mT  # [R, N, dx]

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return log_normal(x - x_prev @ self.A.T, self.L_Q)  # [R, N]

    def propose(self, y: Tensor, x_prev: Tensor, t: int, generator: torch.Generator) -> Tensor:
        # [R, N, dx]
        return (
            self._predict_mean(y, x_prev)
            + (self.L_P @ standard_normal_like(x_prev, generator).mT).mT
        )

    def log_proposal(self, x: Tensor, y: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return log_normal(x - self._predict_mean(y, x_prev), self.L_P)  # [R, N]

    def log_predictive(self, y: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return log_normal(y.unsqueeze(-2) - x_prev @ (self.H @ self.A).T, self.L_S)  # [R, N]

    def _predict_mean(self, y: Tensor, x_prev: Tensor) -> Tensor:
        prior = x_prev @ self.A.T
        # E[x_t | x_{t−1}, y_t]  # [R, N, dx]
        return prior + (y.unsqueeze(-2) - prior @ self.H.T) @ self.gain.mT

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return (self.H @ x.mT).mT  # [R, N, dy]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        whitened = self.whiten @ y.unsqueeze(-1) - (self.whiten @ self.H) @ x.mT  # [R, dy, N]
        constant = self.log_det + y.shape[-1] * LOG_2PI
        return -0.5 * (whitened.square().sum(-2) + constant)  # eq. (6.17)  # [R, N]

    def log_observation_bound(self, t: int) -> float:
        """log sup N(y | Hx, Σ) = −½(dy log 2π + log |Σ|)."""
        return -0.5 * (self.Sigma.shape[-1] * LOG_2PI + float(self.log_det.min()))

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | Hx, Σ)^a dy = ½(1 − a)(dy log 2π + log |Σ|) − ½ dy log a, the same for every
        x; [] or [R, 1]."""
        dy = self.Sigma.shape[-1]
        return 0.5 * (1 - power) * (dy * LOG_2PI + self.log_det) - 0.5 * dy * math.log(power)


class BorrowedDynamics:
    """The dynamics and the observation mean of the model ``dynamics``, with other observation
    noise."""

    dynamics: Any

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return self.dynamics.init(shape, generator)

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        return self.dynamics.transition(x, t, generator)

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        return self.dynamics.transition_mean(x, t)

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return self.dynamics.log_transition(x, x_prev, t)

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        """H x, the observation for noise 0, which need not be its mean."""
        return self.dynamics.observation_mean(x, t)


@register("model", "linear_gaussian_ssm")
class LinearGaussianSSM(Model[Sequence, LinearGaussianModule]):
    """Linear Gaussian state-space model with the matrices of the simulated system.

    x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ); particles
    [R, N, dx]. The model ignores any contamination.  Raises NumericalError if a covariance cannot
    be factorised, ConfigMismatchError on data of another system.

    Source: Boustati (2021), eqs. (6.16), (6.17).
    """

    requires = Requirements(kinds={"sequence"}, simulated={LinearGaussian})

    def build(self, problem: Sequence, rng: Rng) -> LinearGaussianModule:
        return LinearGaussianModule(linear_gaussian_system(problem, self.name))
