"""Normal factors of coefficients: draws, densities and divergences."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities.mean_field import Factors
from components.errors import NumericalError
from components.maths.cholesky import LOG_2PI
from components.maths.divergences.gaussian_kl import kl_gaussian
from components.maths.exponential.standard_draws import standard_normal


def normal_draws(factors: Factors, n: int, generator: torch.Generator) -> Tensor:
    """β ~ N(m, V) of the first start [n, D]."""
    m = factors["m"][0]
    V = factors["V"][0]
    z = standard_normal((n, len(m)), generator, m)
    return m + z @ torch.linalg.cholesky(V).T


def normal_log_density(factors: Factors, beta: Tensor) -> Tensor:
    """log N(β | m, V) of the first start, [n, D] -> [n]."""
    L = torch.linalg.cholesky(factors["V"][0])
    unit = torch.linalg.solve_triangular(L, (beta - factors["m"][0]).T, upper=False)
    return -0.5 * (unit.square().sum(0) + len(L) * LOG_2PI) - L.diagonal().log().sum()


class NormalFactor:
    """q(β) = N(m, V), the only factor; factors m, V."""

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        return normal_draws(factors, n, generator)

    def log_density(self, factors: Factors, theta: Tensor) -> Tensor:
        return normal_log_density(factors, theta)


def divergence(factors: Factors, scales: Tensor) -> Tensor:
    """KL(N(m, V) ‖ N(0, diag s²)) [S]."""
    return kl_gaussian(
        factors["m"], torch.linalg.cholesky(factors["V"]), torch.zeros_like(scales), scales.diag()
    )


def scatter_starts(scales: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Starting points of n runs: 0, then draws from N(0, diag s²) [n, D]."""
    z = standard_normal((n, len(scales)), generator, scales)
    z[:1] = 0
    return z * scales


def invert_positive_definite(precision: Tensor) -> Tensor:
    """Inverse of a positive definite matrix.

    Raises NumericalError if it is singular.
    """
    L, info = torch.linalg.cholesky_ex(precision)
    if (info > 0).any():
        raise NumericalError(
            "XᵀX is singular",
            "set inference.penalised=true, or remove collinear inputs",
        )
    return torch.cholesky_inverse(L)
