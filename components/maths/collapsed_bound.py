"""Titsias' bound: a sparse Gaussian process with Gaussian noise and optimal q(u)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI, half_log_det, jittered_cholesky, triangular_inverse


class LabelMoments(NamedTuple):
    """Statistics of the N labels of each of G groups for the bound; D = diag(σ_n²), A = L⁻¹ K_zx, L
    Lᵀ = K_zz.

    For uncertain inputs, kernels are replaced by their expectations over q(x).
    """

    psi0: Tensor  # Σ_n k(x_n, x_n)/σ_n² [G]
    psi1: Tensor  # A D⁻¹ (y − m) [G, Q, M], Q outputs that share inputs and kernel
    psi2: Tensor  # A D⁻¹ Aᵀ [G, M, M]
    square: Tensor  # (y − m)ᵀ D⁻¹ (y − m), summed over outputs [G]
    log_noise: Tensor  # ln|D| [G]
    number: Tensor  # N [G]


class OptimalInducing(NamedTuple):
    """q(v) = N(m, S), v = L⁻¹ u, at its optimum, and the bound at the optimum."""

    bound: Tensor  # Σ over groups and outputs, in nats []
    mean: Tensor  # m [G, Q, M]
    factor: Tensor  # lower triangular R with R Rᵀ = S⁻¹ = B [G, M, M]

    @property
    def scale(self) -> Tensor:
        """Lower triangular C with C Cᵀ = S = B⁻¹ [G, M, M]."""
        inverse = triangular_inverse(self.factor)
        return torch.linalg.cholesky(inverse.mT @ inverse)


def collapse(moments: LabelMoments) -> OptimalInducing:
    """The bound maximised over q(v), v = L⁻¹ u.

        B = I + Ψ₂,   S = B⁻¹,   m_q = B⁻¹ ψ₁q
        ℒ = −½ Σ_q [N ln 2π + ln|D| + ln|B| + r_qᵀ D⁻¹ r_q − ψ₁qᵀ B⁻¹ ψ₁q + ψ₀ − tr Ψ₂]

    It equals ln N(y | m, Q_xx + D) − ½ tr(D⁻¹ (K_xx − Q_xx)), Q = K_xz K_zz⁻¹ K_zx, for
    certain inputs.

    Source: Titsias (2009), eqs. (9) and (10); Boustati (2021), section 2.4.2; for uncertain
    inputs Titsias and Lawrence (2010), eq. (14)."""
    gram = moments.psi2
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    B = eye + 0.5 * (gram + gram.mT)
    factor, info = torch.linalg.cholesky_ex(B)
    if info.any():  # symmetrise after rounding of expected kernels
        rounding = 1e-9 * float(torch.linalg.diagonal(B.detach()).mean())
        factor, _ = jittered_cholesky(B, rounding, "I + Ψ₂ of the collapsed bound")
    outputs = moments.psi1.shape[1]
    c = torch.linalg.solve_triangular(factor, moments.psi1.mT, upper=False)  # [G, M, Q]
    log_det = 2 * half_log_det(factor)
    shared = moments.number * LOG_2PI + moments.log_noise + log_det
    trace = moments.psi0 - torch.linalg.diagonal(gram).sum(-1)
    fit = moments.square - c.square().sum((-2, -1))
    bound = -0.5 * (outputs * (shared + trace) + fit).sum()
    mean = torch.linalg.solve_triangular(factor.mT, c, upper=True).mT
    return OptimalInducing(bound, mean, factor)
