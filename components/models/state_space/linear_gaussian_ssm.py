"""The linear Gaussian state-space model, with the parameters that made the data."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LinearGaussian
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.problems.sequence import Sequence
from components.registry import register
from components.trouble import Misfit, NumericalTrouble


def factor(matrix: Tensor, name: str) -> Tensor:
    """Lower Cholesky factor of a covariance."""
    lower, failed = torch.linalg.cholesky_ex(matrix)
    if failed:
        raise NumericalTrouble(f"Cholesky of {name} failed in {matrix.dtype}", "set dtype=float64")
    return lower


def linear_gaussian_system(problem: Sequence, model: str) -> LinearGaussian:
    """The system that a model assumes.

    Raises:
        Misfit: what made the data is something else, or not known.
    """
    if not isinstance(problem.system, LinearGaussian):
        raise Misfit(f"model={model}: assumes a linear Gaussian system, and dataset={problem.name} names none")
    return problem.system


class LinearGaussianModule(nn.Module):
    """``StateSpace``, ``LinearGaussian`` and ``PowerIntegral`` of a linear Gaussian system."""

    A: Tensor
    Q: Tensor
    H: Tensor
    Sigma: Tensor
    m0: Tensor
    P0: Tensor
    L_Q: Tensor
    L_P0: Tensor
    whiten: Tensor

    def __init__(self, system: LinearGaussian):
        super().__init__()
        matrices = {
            "A": system.A,
            "Q": system.Q,
            "H": system.H,
            "Sigma": system.Sigma,
            "m0": system.m0,
            "P0": system.P0,
        }
        for name, matrix in matrices.items():
            self.register_buffer(name, matrix.clone())
        self.register_buffer("L_Q", factor(self.Q, "Q"))
        self.register_buffer("L_P0", factor(self.P0, "P_0"))
        L = factor(self.Sigma, "Σ")
        self.register_buffer("whiten", torch.linalg.inv(L))  # Σ^−½ [dy, dy]
        self.log_det = 2 * float(L.diagonal().log().sum())  # log |Σ|

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        dx = len(self.m0)
        z = torch.randn(*shape, dx, generator=generator, device=generator.device, dtype=self.m0.dtype)
        return self.m0 + z.to(self.m0.device) @ self.L_P0.T  # [R, N, dx]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        z = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return x @ self.A.T + z @ self.L_Q.T  # eq. (6.16)  # [R, N, dx]

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return x @ self.H.T  # [R, N, dy]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        whitened = (y @ self.whiten.T).unsqueeze(-2) - x @ (self.whiten @ self.H).T  # [R, N, dy]
        constant = self.log_det + y.shape[-1] * math.log(2 * math.pi)
        return -0.5 * (whitened.square().sum(-1) + constant)  # eq. (6.17)  # [R, N]

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | Hx, Σ)^a dy = ½(1 − a)(dy log 2π + log |Σ|) − ½ dy log a, the same for every x; []."""
        dy = len(self.Sigma)
        value = 0.5 * (1 - power) * (dy * math.log(2 * math.pi) + self.log_det) - 0.5 * dy * math.log(power)
        return torch.as_tensor(value, device=x.device, dtype=x.dtype)


@register("model", "linear_gaussian_ssm")
class LinearGaussianSSM(Model[Sequence, LinearGaussianModule]):
    """Linear Gaussian state-space model whose matrices are those of the simulated system.

    x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ); particles [R, N, dx].  It knows nothing of any
    contamination.  Raises NumericalTrouble when a covariance cannot be factorised, Misfit on data of another system.

    Source: Boustati (2021), eqs. (6.16), (6.17)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    offers: ClassVar[frozenset[str]] = frozenset({"state_space", "linear_gaussian", "power_integral"})
    assumes: ClassVar[frozenset[str]] = frozenset({"linear_gaussian"})

    def build(self, problem: Sequence, rng: Rng) -> LinearGaussianModule:
        return LinearGaussianModule(linear_gaussian_system(problem, self.name))
