"""Kullback–Leibler divergences between Gaussians, in nats."""

from __future__ import annotations

import torch
from torch import Tensor


def kl_whitened(m: Tensor, C: Tensor) -> Tensor:
    """Σ KL[N(m, C Cᵀ) ‖ N(0, I)] over all leading dimensions: m [..., M], C lower triangular [...,
    M, M].

    Source: Boustati (2021), eq. (3.12), with whitened inducing variables.
    """
    log_det = 2 * torch.linalg.diagonal(C).abs().log().sum()
    return 0.5 * (C.square().sum() + m.square().sum() - m.numel() - log_det)


def kl_gaussian(m: Tensor, L: Tensor, m0: Tensor, L0: Tensor) -> Tensor:
    """KL[N(m, L Lᵀ) ‖ N(m₀, L₀ L₀ᵀ)] for each leading index; lower triangular L, L₀ [..., M, M]."""
    A = torch.linalg.solve_triangular(L0, L, upper=False)
    d = torch.linalg.solve_triangular(L0, (m - m0).unsqueeze(-1), upper=False).squeeze(-1)
    log_det = 2 * (
        torch.linalg.diagonal(L0).abs().log() - torch.linalg.diagonal(L).abs().log()
    ).sum(-1)
    return 0.5 * (A.square().sum((-2, -1)) + d.square().sum(-1) - m.shape[-1] + log_det)


def kl_diagonal(m: Tensor, v: Tensor, m0: Tensor | float, v0: Tensor | float) -> Tensor:
    """Σ KL[N(m, v) ‖ N(m₀, v₀)] over all elements, variances v and v₀."""
    v0 = torch.as_tensor(v0, dtype=v.dtype, device=v.device)
    return 0.5 * (v / v0 + (m - m0) ** 2 / v0 - 1 + v0.log() - v.log()).sum()
