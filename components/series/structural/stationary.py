"""Stationary autoregressions, by their partial autocorrelations."""

from __future__ import annotations

import torch
from torch import Tensor


def partial_to_coefficients(partial: Tensor) -> Tensor:
    """Coefficients φ [C, p] from partial autocorrelations r [C, p] in (−1, 1): φ_k^(k) = r_k, and
    for j < k

        φ_j^(k) = φ_j^(k−1) − r_k φ_{k−j}^(k−1)

    Source: Monahan (1984)."""
    phi = partial[:, :0]
    for r in partial.split(1, 1):
        phi = torch.cat([phi - r * phi.flip(1), r], 1)
    return phi


def coefficients_to_partial(phi: Tensor) -> Tensor:
    """The inverse: r [C, p] from φ [C, p]; outside (−1, 1), or NaN, if φ is not stationary.

    Source: Monahan (1984)."""
    out = []
    while phi.shape[1]:
        r = phi[:, -1:]
        out.append(r)
        phi = (phi[:, :-1] + r * phi[:, :-1].flip(1)) / (1 - r.square())
    return torch.cat(out[::-1], 1) if out else phi
