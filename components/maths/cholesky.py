"""Cholesky factors with adaptive jitter, which is returned; products and inverses of triangular
matrices.

Products of batches of matrices with one triangle zero, or with only one triangle needed, are split
into two or three products of blocks by halving rows and columns, which saves a quarter to a half of
the multiplications.  On a device, and for small matrices, each is one product.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.errors import NumericalError

LOG_2PI = math.log(2 * math.pi)  # constant of every Gaussian log density
ESCALATIONS = 4  # the jitter may be increased by 10⁴ before an error
MIN_ROWS = 64  # products of smaller blocks take as long as one product
ALIGNED = 8  # the number of rows in the first half is a multiple of it

# Blocks of a product A B: rows of A, columns of A (rows of B), columns of B; first half, second
# half or all.  L and L' are lower triangular, U is upper triangular, X and Y are full.
_F, _S, _W = range(3)
Blocks = tuple[tuple[int, int, int], ...]
L_X: Blocks = ((_F, _F, _W), (_S, _W, _W))
U_X: Blocks = ((_F, _W, _W), (_S, _S, _W))
# L L'; the block above the diagonal is not written
L_L: Blocks = ((_F, _F, _F), (_S, _W, _F), (_S, _S, _S))
U_L: Blocks = ((_F, _W, _F), (_F, _S, _S), (_S, _S, _W))
# the lower half of a product; the block above the diagonal is not written
HALF_OF_X_Y: Blocks = ((_F, _W, _F), (_S, _W, _W))
HALF_OF_X_L: Blocks = ((_W, _W, _F), (_S, _S, _S))
HALF_OF_L_U: Blocks = ((_W, _F, _F), (_S, _W, _S))


def half_log_det(L: Tensor) -> Tensor:
    """½ log |L Lᵀ| of triangular factors with positive diagonals [..., n, n] -> [...]."""
    return torch.linalg.diagonal(L).log().sum(-1)


def jittered_cholesky(
    K: Tensor, jitter: float, quantity: str = "K_zz", key: str = "model.jitter"
) -> tuple[Tensor, float]:
    """Lower Cholesky factor of K [..., M, M] with the smallest sufficient jitter.

    L Lᵀ = K + j I for the smallest j = jitter · 10ᵏ, k ≤ 4, at which L exists.

    Returns:
        L and the jitter j used, so that an increased jitter can be logged.

    Raises:
        NumericalError: K is not finite, or has no factor even with jitter · 10⁴; the message
        suggests raising ``key``.
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
    """L⁻¹ of lower triangular L [..., M, M], computed once per step, so that all further operations
    are matrix products."""
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand_as(L)
    return torch.linalg.solve_triangular(L, eye, upper=False)


def _cut(n: int) -> tuple[slice, slice, slice]:
    """First half, second half and all of n rows."""
    half = n // 2 // ALIGNED * ALIGNED
    return slice(0, half), slice(half, n), slice(0, None)


def is_cut(A: Tensor) -> bool:
    """True if products of A [G, M, M] are computed by blocks."""
    return A.device.type == "cpu" and A.shape[-2] >= MIN_ROWS


def block_product(A: Tensor, B: Tensor, blocks: Blocks) -> Tensor:
    """A B [G, M, N] for A [G, M, K] and B [G, K, N], restricted to ``blocks``."""
    if not is_cut(A):
        return A.bmm(B)
    places = _cut(A.shape[-2])
    product = A.new_empty(len(A), A.shape[-2], B.shape[-1])
    for block in blocks:
        rows, inner, columns = (places[part] for part in block)
        # beta = 0: the uninitialised memory is not read
        product[:, rows, columns].baddbmm_(A[:, rows, inner], B[:, inner, columns], beta=0)
    return product


def symmetric_product(A: Tensor, B: Tensor, blocks: Blocks = HALF_OF_X_Y) -> Tensor:
    """Symmetric A B [G, M, M]: compute its lower half, and copy it."""
    product = block_product(A, B, blocks)
    if is_cut(A):
        first, second, _ = _cut(A.shape[-2])
        product[:, first, second] = product[:, second, first].mT
    return product


def inverse_of_lower(L: Tensor) -> Tensor:
    """L⁻¹ of lower triangular L [G, M, M]; not differentiable.

    [L₁ 0; L₂₁ L₂]⁻¹ = [L₁⁻¹ 0; −L₂⁻¹ L₂₁ L₁⁻¹ L₂⁻¹]
    """
    if not is_cut(L):
        return triangular_inverse(L)
    first, second, _ = _cut(L.shape[-2])
    inverse = L.new_zeros(L.shape)
    inverse[:, first, first] = triangular_inverse(L[:, first, first])
    inverse[:, second, second] = triangular_inverse(L[:, second, second])
    below = inverse[:, second, second].bmm(L[:, second, first])
    inverse[:, second, first].baddbmm_(below, inverse[:, first, first], beta=0, alpha=-1)
    return inverse
