"""Gaussian processes with a Matérn kernel as linear stochastic differential equations, observed at
steps Δτ.

With ν = p + 1/2 and λ = √(2ν)/ℓ the state (f, f', …, f^(p)) of a process with the Matérn-ν kernel
solves dx = F x dτ + L dW, F the companion matrix of (s + λ)^(p+1), and is stationary with
covariance P∞:

    x_t = A x_{t−1} + N(0, Q),   A = exp(Δτ F),   Q = P∞ − A P∞ Aᵀ = ∫_0^Δτ exp(uF) L q Lᵀ exp(uF)ᵀ du

Source: Hartikainen and Särkkä (2010), section 3; Boustati (2021), appendix D.3.6."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import torch
from pydantic import AfterValidator
from torch import Tensor

# F and P∞ with λ = σ² = 1, and the spectral density q of W.  D.3.6 omits the sign of one corner of
# the last P∞.
_DRIFT = {
    0.5: [[-1.0]],
    1.5: [[0.0, 1.0], [-1.0, -2.0]],
    2.5: [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -3.0, -3.0]],
}
_STATIONARY = {
    0.5: [[1.0]],
    1.5: [[1.0, 0.0], [0.0, 1.0]],
    2.5: [[1.0, 0.0, -1 / 3], [0.0, 1 / 3, 0.0], [-1 / 3, 0.0, 1.0]],
}
_SPECTRAL = {0.5: 2.0, 1.5: 4.0, 2.5: 16 / 3}
_NODES = 24  # of the quadrature over a time of at most 1/λ: exact up to rounding


def _check_smoothness(smoothness: float) -> float:
    if smoothness not in _DRIFT:
        raise ValueError(f"smoothness must be one of {', '.join(map(str, _DRIFT))}")
    return smoothness


Smoothness = Annotated[float, AfterValidator(_check_smoothness)]  # ν


def matern_matrices(
    smoothness: float, lengthscale: float, variance: float, noise_variance: float, step: float
) -> dict[str, Tensor]:
    """A, Q, H, Sigma, m0, P0 of regression on a process: y_t = f(t Δτ) + N(0, σ²), the state
    stationary; in float64."""
    A, Q, P = transition(smoothness, lengthscale, variance, step)
    first = torch.eye(len(A), dtype=A.dtype)[:1]
    return {
        "A": A,
        "Q": Q,
        "H": first,
        "Sigma": A.new_tensor([[noise_variance]]),
        "m0": A.new_zeros(len(A)),
        "P0": P,
    }


def transition(
    smoothness: float, lengthscale: float, variance: float, step: float
) -> tuple[Tensor, Tensor, Tensor]:
    """A, Q and P∞ of the state (f, f', …), [d, d] each in float64, d = ν + 1/2.

    They are computed in units of time 1/λ, where all entries have the same magnitude.  For a short
    step the difference P∞ − A P∞ Aᵀ would cancel and Q would have no Cholesky factor; Q is then
    computed from its integral, a sum of positive terms."""
    drift = torch.tensor(_DRIFT[smoothness], dtype=torch.float64)
    stationary = torch.tensor(_STATIONARY[smoothness], dtype=torch.float64)
    rate = math.sqrt(2 * smoothness) / lengthscale  # λ
    time = rate * step
    A = _exponential(drift, torch.tensor([time], dtype=torch.float64))[0]
    if time < 1:
        nodes, weights = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(_NODES))
        driven = _exponential(drift, time * (nodes + 1) / 2)[:, :, -1]  # exp(uF) L  [K, d]
        Q = _SPECTRAL[smoothness] * time / 2 * (driven.T * weights) @ driven
    else:
        Q = stationary - A @ stationary @ A.T
    scale = rate ** torch.arange(len(drift), dtype=torch.float64)  # f^(i) scales as λ^i
    outer = variance * scale.outer(scale)
    return A * scale.outer(1 / scale), 0.5 * (Q + Q.T) * outer, stationary * outer


def _exponential(drift: Tensor, times: Tensor) -> Tensor:
    """exp(uF) = e^−u Σ_{k<d} (u N)^k / k! for times u [K] -> [K, d, d].

    N = F + I is nilpotent: N^d = 0.
    """
    identity = torch.eye(len(drift), dtype=drift.dtype)
    nilpotent = drift + identity
    term = identity.expand(len(times), -1, -1)
    total = term
    for k in range(1, len(drift)):
        term = term @ nilpotent * (times / k).view(-1, 1, 1)
        total = total + term
    return total * torch.exp(-times).view(-1, 1, 1)
