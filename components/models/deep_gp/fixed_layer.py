"""Layer of sparse Gaussian processes with only q(v) learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.maths.cholesky import jittered_cholesky, triangular_inverse
from components.maths.divergences.gaussian_kl import kl_whitened
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import kernel

# in units of σ², because rounding can make a variance at an inducing input negative
UNIT_VARIANCE_FLOOR = 1e-10


class FixedLayer(nn.Module):
    """Q processes f_q ~ GP(W_qᵀ x, σ² κ) that share x [..., D], inducing inputs Z [M, D] and a
    squared exponential κ, all fixed; each has its own q(v_q) = N(m_q, C_q C_qᵀ) over whitened
    values (``GPLayer`` has the formulas).

    Parameters: m [Q, M] and the lower triangles C row by row [Q, M(M + 1)/2], without the zeros
    above the diagonal, which would count as gradients.  L⁻¹, L Lᵀ = κ(Z, Z) + jitter · I, is
    computed once.  Every operation is twice differentiable and vectorisable, as required for
    row-wise gradients and for curvatures in the noise.

    Source: Boustati (2021), appendix B.2.2 and eqs. (3.5) to (3.9)."""

    inducing: Tensor  # [M, D]
    slopes: Tensor  # Zᵀ/ℓ² [D, M]
    offsets: Tensor  # −|z|²/2ℓ² [M]
    whiten: Tensor  # L⁻ᵀ [M, M]
    place: Tensor  # indices of the entries of C in [M, Q, M], the row of C first
    mean_weight: Tensor | None  # W [D, Q]; None means a zero mean function, or the identity

    def __init__(
        self,
        name: str,
        inducing: Tensor,
        n_outputs: int,
        *,
        lengthscale: float,
        variance: float,
        q_scale: float,
        mean_weight: Tensor | None,  # None means a zero mean function
        jitter: float,
    ):
        super().__init__()
        Q = n_outputs
        M = len(inducing)
        self.variance = variance
        self.std = variance**0.5
        self.rate = 0.5 * lengthscale**-2
        unit_variance = inducing.new_ones(())
        length = inducing.new_tensor([lengthscale])
        kzz = kernel(inducing, inducing, length, unit_variance, "squared_exponential")
        L, _ = jittered_cholesky(kzz.fill_diagonal_(1.0), jitter, f"K_zz of the {name} layer")
        row, column = torch.tril_indices(M, M, device=inducing.device)
        self.identity = mean_weight is not None and torch.equal(
            mean_weight, torch.eye(len(mean_weight)).to(mean_weight)
        )
        buffers = {
            "inducing": inducing,
            "slopes": 2 * self.rate * inducing.T,
            "offsets": -self.rate * inducing.square().sum(1),
            "whiten": triangular_inverse(L).T,
            "place": (
                row * Q * M + column + M * torch.arange(Q, device=row.device)[:, None]
            ).flatten(),
            "mean_weight": None if self.identity else mean_weight,
        }
        for key, value in buffers.items():
            self.register_buffer(key, None if value is None else value.contiguous())
        self.q_mean = nn.Parameter(inducing.new_zeros(Q, M))
        self.q_packed = nn.Parameter((q_scale * (row == column).to(inducing)).repeat(Q, 1))

    @property
    def factors(self) -> Tensor:
        """C of all processes, [M, Q, M]."""
        Q, M = self.q_mean.shape
        zeros = self.q_packed.new_zeros(Q * M * M)
        return zeros.index_put((self.place,), self.q_packed.flatten()).view(M, Q, M)

    @property
    def q_tril(self) -> Tensor:
        """C [Q, M, M]."""
        return self.factors.transpose(0, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [..., Q] of q(f(x)) for x [..., D]."""
        Q, M = self.q_mean.shape
        exponent = x @ self.slopes + (self.offsets - self.rate * x.square().sum(-1, keepdim=True))
        A = exponent.exp() @ self.whiten  # L⁻¹ κ(Z, x) [..., M]
        AC = (A @ self.factors.view(M, Q * M)).unflatten(-1, (Q, M))
        variance = AC.square().sum(-1) + (1.0 - A.square().sum(-1, keepdim=True))
        mean = A @ (self.std * self.q_mean).T
        if self.identity:
            mean = mean + x
        elif self.mean_weight is not None:
            mean = mean + x @ self.mean_weight
        return mean, self.variance * variance.clamp_min(UNIT_VARIANCE_FLOOR)

    @torch.no_grad()
    def sample_prior(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of every process from its prior, jointly at x [N, D]: [N, Q]."""
        length = x.new_tensor([(0.5 / self.rate) ** 0.5])
        variance = x.new_tensor(self.variance)
        K = kernel(x, x, length, variance, "squared_exponential")
        L, _ = jittered_cholesky(K, 1e-8 * self.variance, "the prior of a layer")
        f = L @ standard_normal((len(x), len(self.q_mean)), generator, x)
        if self.identity:
            return f + x
        return f if self.mean_weight is None else f + x @ self.mean_weight

    def kl(self) -> Tensor:
        """Σ over the processes of KL[q(u) ‖ p(u)], in nats."""
        return kl_whitened(self.q_mean, self.q_tril)
