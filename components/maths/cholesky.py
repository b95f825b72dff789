"""Cholesky factors that raise the jitter when they must, and say so."""

from __future__ import annotations

import torch
from torch import Tensor

from components.errors import NumericalError

ESCALATIONS = 4  # the jitter may grow by 10⁴ before an error


def jittered_cholesky(
    K: Tensor, jitter: float, quantity: str = "K_zz", key: str = "model.jitter"
) -> tuple[Tensor, float]:
    """Lower Cholesky factor of K [..., M, M] with the least sufficient jitter.

    L Lᵀ = K + j I for the smallest j = jitter · 10ᵏ, k ≤ 4, at which L exists.

    Returns:
        L and the j that was used, so that a raised jitter can be logged.

    Raises:
        NumericalError: K is not finite, or has no factor even with jitter · 10⁴; raise
            the setting ``key``.
    """
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    used = jitter
    for _ in range(ESCALATIONS + 1):
        L, info = torch.linalg.cholesky_ex(K + used * eye)
        if not info.any():
            return L, used
        used *= 10
    if not torch.isfinite(K).all():
        raise NumericalError(
            f"{quantity} is not finite", "lower inference.lr, or set inference.clip_norm"
        )
    raise NumericalError(
        f"Cholesky of {quantity} failed even with jitter {used / 10:g}", f"raise {key}"
    )


def triangular_inverse(L: Tensor) -> Tensor:
    """L⁻¹ of lower triangular L [..., M, M]: once per step, so that everything after it is matrix
    products."""
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L)
    return torch.linalg.solve_triangular(L, eye, upper=False)
