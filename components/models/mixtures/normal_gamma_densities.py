"""Densities, entropies and quadrature of a normal-gamma distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI

NODES = 32  # of the quadrature over τ


def gamma_entropy(a: Tensor, b: Tensor) -> Tensor:
    """Entropy of Gamma(a, b)."""
    return a - b.log() + a.lgamma() + (1 - a) * a.digamma()


def gauss_gamma(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights [S, Q] of E f(τ), τ ~ Gamma(a, b), by generalised Gauss–Laguerre
    quadrature."""
    nodes = []
    weights = []
    for shape in a.tolist():
        k = torch.arange(NODES, dtype=torch.float64)
        off = (k[1:] * (k[1:] + shape - 1)).sqrt()
        jacobi = torch.diag(2 * k + shape) + torch.diag(off, 1) + torch.diag(off, -1)
        values, vectors = torch.linalg.eigh(jacobi)  # Golub and Welsch
        nodes.append(values)
        weights.append(vectors[0].square())
    return torch.stack(nodes).to(a) / b[:, None], torch.stack(weights).to(a).clamp_min(
        torch.finfo(a.dtype).tiny
    )


def normal_gamma_log_density(
    theta: Tensor, m: Tensor, precision: Tensor, a: Tensor, b: Tensor
) -> Tensor:
    """log N(μ | m, 1/precision) Gamma(τ | a, b) at θ = (μ, log τ) [n, 2], as a density of log τ."""
    mu, log_tau = theta.unbind(1)
    normal = 0.5 * (precision.log() - LOG_2PI - precision * (mu - m).square())
    return normal + a * b.log() - a.lgamma() + a * log_tau - b * log_tau.exp()
