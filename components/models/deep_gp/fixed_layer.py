"""A layer of sparse Gaussian processes of which only q(v) is learnt."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.maths.cholesky import jittered_cholesky, triangular_inverse
from components.maths.gaussian_kl import kl_whitened
from components.maths.kernels import correlation, lift_centres, lift_inputs
from components.maths.sparse_gp import whitened_moments

UNIT_VARIANCE_FLOOR = 1e-10  # in units of σ²: rounding can make a variance at an inducing input negative


class FixedLayer(nn.Module):
    """Q processes f_q ~ GP(W_qᵀ x, σ² κ) that share x [..., D], inducing inputs Z [M, D] and a squared exponential κ, all
    fixed; each has its own q(v_q) = N(m_q, C_q C_qᵀ) over whitened values (``GPLayer`` has the formulas).

    Parameters: m [Q, M] and the lower triangles C row by row [Q, M(M + 1)/2], without the zeros above the diagonal, which
    would count as gradients.  L⁻¹, L Lᵀ = κ(Z, Z) + jitter · I, is found once.  Every operation is differentiable twice and
    can be vectorised, as gradients row by row and curvatures in the noise ask.

    Source: Boustati (2021), appendix B.2.2 and eqs. (3.5) to (3.9)."""

    inducing: Tensor  # [M, D]
    centres: Tensor  # the same, lifted and transposed [D + 2, M]
    whiten: Tensor  # L⁻ᵀ [M, M]
    mean_weight: Tensor | None  # W [D, Q]
    row: Tensor
    column: Tensor

    def __init__(
        self,
        name: str,
        inducing: Tensor,
        n_outputs: int,
        *,
        lengthscale: float,
        variance: float,
        q_scale: float,
        mean_weight: Tensor | None,  # None: zero mean function
        jitter: float,
    ):
        super().__init__()
        M = len(inducing)
        w = inducing.new_full((1, 1), lengthscale**-2)
        centres = lift_centres(inducing[None], w)[0]
        kzz = correlation(centres @ lift_inputs(inducing, True).T, "squared_exponential", False)[0]
        kzz.fill_diagonal_(1.0)  # exactly, whatever the rounding of r²
        L, _ = jittered_cholesky(kzz, jitter, f"K_zz of the {name} layer")
        row, column = torch.tril_indices(M, M, device=inducing.device)
        self.variance, self.std = variance, variance**0.5
        for key, value in {"inducing": inducing, "centres": centres.T, "whiten": triangular_inverse(L).T, "row": row,
                           "column": column, "mean_weight": mean_weight}.items():  # fmt: skip
            self.register_buffer(key, None if value is None else value.clone())
        self.q_mean = nn.Parameter(inducing.new_zeros(n_outputs, M))
        self.q_packed = nn.Parameter((q_scale * (row == column).to(inducing)).repeat(n_outputs, 1))

    @property
    def q_tril(self) -> Tensor:
        """C [Q, M, M]."""
        Q, M = self.q_mean.shape
        zeros = self.q_packed.new_zeros(Q, M, M)
        every = torch.arange(Q, device=zeros.device)[:, None]
        return zeros.index_put((every, self.row, self.column), self.q_packed)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [..., Q] of q(f(x)) for x [..., D]."""
        kxz = correlation(lift_inputs(x, True) @ self.centres, "squared_exponential", False)[0]  # [..., M]
        mean, variance = whitened_moments(kxz @ self.whiten, self.q_mean, self.q_tril)
        mean = self.std * mean
        if self.mean_weight is not None:
            mean = mean + x @ self.mean_weight
        return mean, self.variance * variance.clamp_min(UNIT_VARIANCE_FLOOR)

    def kl(self) -> Tensor:
        """Σ over the processes of KL[q(u) ‖ p(u)], in nats."""
        return kl_whitened(self.q_mean, self.q_tril)
