"""α-divergences from a density on the line to an unnormalised Gaussian, by quadrature."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI

NEAR = 1e-6  # |α − 1| or |α| below which the divergence is replaced by its limit, a KL divergence


class Quadrature(NamedTuple):
    """log p at evenly spaced points x of a range, with the logarithm of the spacing."""

    x: Tensor  # [G]
    log_p: Tensor  # [G]
    log_dx: float


class NearestGaussian(NamedTuple):
    """The unnormalised Gaussian Z N(m, s²) nearest to p in D_α."""

    alpha: float
    mass: float  # Z
    mean: float  # m
    sd: float  # s
    divergence: float  # D_α[p ‖ Z N]; NaN for α = ±∞


def log_normal(x: Tensor, mean: Tensor, log_sd: Tensor) -> Tensor:
    """log N(x | m, s²), [G]."""
    return -0.5 * ((x - mean) / log_sd.exp()).square() - log_sd - 0.5 * LOG_2PI


def log_mass(grid: Quadrature, log_n: Tensor, alpha: float) -> Tensor:
    """log Z of the optimal mass for a shape N: the power mean of order α of p/N under N [].

        Z = (∫ p^α N^{1−α} dx)^{1/α}

    α → 0 is exp E_N[log p/N], α → ±∞ the largest and the smallest p/N.
    """
    ratio = grid.log_p - log_n
    if math.isinf(alpha):
        return ratio.amax() if alpha > 0 else ratio.amin()
    if alpha == 0:
        return ((log_n + grid.log_dx).exp() * ratio).sum()
    return (alpha * ratio + log_n + grid.log_dx).logsumexp(0) / alpha


def shape_objective(grid: Quadrature, log_n: Tensor, alpha: float) -> Tensor:
    """log Z/(α − 1) [], which the optimal shape N minimises, normalised or not.

    With Z at its optimum D_α = (∫p − Z)/(1 − α), and for Z = 1 D_α = (1 − Z^α)/(α(1 − α)): both are
    monotone in log Z/(α − 1), which is Rényi's divergence divided by α.  At 1 it is KL(p ‖ N), at 0
    KL(N ‖ p); at ±∞ ±log Z.
    """
    if math.isinf(alpha):
        return log_mass(grid, log_n, alpha) * (1.0 if alpha > 0 else -1.0)
    if abs(alpha - 1) < NEAR:
        return ((grid.log_p + grid.log_dx).exp() * (grid.log_p - log_n)).sum()
    return log_mass(grid, log_n, alpha) / (alpha - 1)


def divergence(grid: Quadrature, log_q: Tensor, alpha: float) -> Tensor:
    """D_α[p ‖ q] [] for measures that need not have mass 1.

        D_α = ∫ (α p + (1 − α) q − p^α q^{1−α}) dx / (α (1 − α))

    For ∫p = ∫q = 1 this is eq. (17); at 1 and 0 KL(p ‖ q) and KL(q ‖ p), eqs. (18) and (19),
    plus the difference of the masses.
    """
    p = (grid.log_p + grid.log_dx).exp()
    q = (log_q + grid.log_dx).exp()
    ratio = grid.log_p - log_q
    if abs(alpha - 1) < NEAR:
        return (p * ratio + q - p).sum()
    if abs(alpha) < NEAR:
        return (p - q - q * ratio).sum()
    powers = (alpha * grid.log_p + (1 - alpha) * log_q + grid.log_dx).exp()
    return (alpha * p + (1 - alpha) * q - powers).sum() / (alpha * (1 - alpha))


def starts(grid: Quadrature) -> list[tuple[float, float]]:
    """Starts (m, log s) from the moments of p, and from each of its modes with the curvature."""
    p = (grid.log_p + grid.log_dx).softmax(0)
    mean = (p * grid.x).sum()
    sd = (p * (grid.x - mean).square()).sum().sqrt()
    inner = grid.log_p[1:-1]
    peaks = ((inner > grid.log_p[:-2]) & (inner >= grid.log_p[2:])).nonzero()[:, 0] + 1
    curvature = grid.log_p[peaks - 1] + grid.log_p[peaks + 1] - 2 * grid.log_p[peaks]
    widths = math.exp(grid.log_dx) * (-curvature).clamp_min(1e-12).rsqrt()
    modes = zip(grid.x[peaks].tolist(), widths.log().tolist(), strict=True)
    return [(float(mean), float(sd.log())), *modes]


def minimise(grid: Quadrature, alpha: float, begin: list[tuple[float, float]]) -> NearestGaussian:
    """The best of the minima found from the starts ``begin``: by BFGS, or by Nelder–Mead for α =
    ±∞, because these objectives are not smooth.  s is at least twice the grid spacing."""
    from scipy.optimize import minimize

    least = grid.log_dx + math.log(2)

    def objective(at: Tensor) -> Tensor:
        return shape_objective(grid, log_normal(grid.x, at[0], at[1].clamp_min(least)), alpha)

    def value(at: object) -> float:
        return float(objective(torch.as_tensor(at, dtype=grid.x.dtype)))

    def value_and_gradient(at: object) -> tuple[float, object]:
        parameters = torch.as_tensor(at, dtype=grid.x.dtype).requires_grad_()
        result = objective(parameters)
        (gradient,) = torch.autograd.grad(result, parameters)
        return float(result.detach()), gradient.numpy()

    is_limit = math.isinf(alpha)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000} if is_limit else {"gtol": 1e-9}
    minima = [
        minimize(value, start, method="Nelder-Mead", options=options)
        if is_limit
        else minimize(value_and_gradient, start, jac=True, method="BFGS", options=options)
        for start in begin
    ]
    best = min(minima, key=lambda one: one.fun if math.isfinite(one.fun) else math.inf)
    mean, log_sd = torch.as_tensor(best.x, dtype=grid.x.dtype)
    log_n = log_normal(grid.x, mean, log_sd)
    log_z = log_mass(grid, log_n, alpha)
    d = math.nan if is_limit else float(divergence(grid, log_z + log_n, alpha))
    return NearestGaussian(alpha, float(log_z.exp()), float(mean), float(log_sd.exp()), d)
