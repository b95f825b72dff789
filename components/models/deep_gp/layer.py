"""One batched layer of sparse Gaussian processes: every process of every task in one call."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from components.maths.cholesky import jittered_cholesky
from components.maths.exponential.standard_draws import normal_like, standard_normal
from components.maths.kernels import Shape, kernel
from components.maths.sparse_gp import LayerMoments, sparse_conditional


class InitialKernel(NamedTuple):
    """A kernel and its initial parameters."""

    shape: Shape
    ard: bool
    lengthscale: float
    variance: float


class GPLayer(nn.Module):
    """G groups of Q processes f_gq ~ GP(m(x), σ_g² κ(Σ_d (x_d − x'_d)²/ℓ_gd²)), each with q(v) =
    N(m, C Cᵀ).

    The processes of a group share inputs, inducing inputs and kernel (the D^{G_i} outputs of one
    g_i of Boustati section 3.3.1); groups are independent.  v = L⁻¹ u are whitened inducing values
    in units of σ_g: q(f) at x is

        μ(x) = m(x) + σ Aᵀ m,   v(x) = σ² (1 − Aᵀ A + Aᵀ C Cᵀ A),   A = L⁻¹ κ(Z, x),   L Lᵀ = κ(Z, Z) + jitter · I.

    Source: Boustati (2021), eqs. (3.5) to (3.9) and (3.15).
    """

    q_mean: nn.Parameter
    q_tril: nn.Parameter
    initial_inducing: Tensor
    mean_weight: Tensor | None
    mean_bias: Tensor | None

    def __init__(
        self,
        name: str,
        inducing: Tensor,  # [G, M, D]
        n_outputs: int,  # Q
        *,
        kernel: InitialKernel,
        q_mean: Tensor | None,  # [G, Q, M]; None means zero
        q_scale: float,
        mean_weight: Tensor | None = None,  # [G, D, Q]; None means a zero mean function
        learn_mean: bool = False,
        jitter: float,
    ):
        super().__init__()
        self.name = name
        self.shape = kernel.shape
        self.jitter = jitter
        self.n_outputs = n_outputs
        G, M, D = inducing.shape
        self.inducing = nn.Parameter(inducing.clone())
        self.register_buffer("initial_inducing", inducing.clone())
        self.log_lengthscale = nn.Parameter(
            inducing.new_full((G, D if kernel.ard else 1), kernel.lengthscale).log()
        )
        self.log_variance = nn.Parameter(inducing.new_full((G,), kernel.variance).log())
        self.q_mean = nn.Parameter(
            inducing.new_zeros(G, n_outputs, M) if q_mean is None else q_mean.clone()
        )
        self.q_tril = nn.Parameter((q_scale * torch.eye(M).to(inducing)).repeat(G, n_outputs, 1, 1))
        if learn_mean:
            self.mean_weight = nn.Parameter(inducing.new_zeros(G, D, n_outputs))
            self.mean_bias = nn.Parameter(inducing.new_zeros(G, n_outputs, 1))
        else:
            self.register_buffer(
                "mean_weight", None if mean_weight is None else mean_weight.clone()
            )
            self.mean_bias = None

    @property
    def variance_floor(self) -> float:
        """Smallest variance, in units of σ², because rounding can make a variance at an inducing
        input negative."""
        return 1e-10 if self.inducing.dtype == torch.float64 else 1e-6

    def prior_mean(self, x: Tensor) -> Tensor | None:
        """m(x) [G, Q, N], or None if it is zero."""
        if self.mean_weight is None:
            return None
        m = torch.matmul(self.mean_weight.mT, x.mT)  # [G, Q, N]
        return m if self.mean_bias is None else m + self.mean_bias

    def forward(self, x: Tensor) -> LayerMoments:
        """Mean and variance [G, Q, N] of q(f(x)) for x [N, D] or [G, N, D]; Σ KL[q(u) ‖ p(u)] over
        the layer's processes, and the jitter added to K_zz."""
        mean, variance, terms = self._conditional(x, self.q_mean)
        prior_mean = self.prior_mean(x)
        if prior_mean is not None:
            mean = mean + prior_mean
        variance = (
            variance.clamp_min(self.variance_floor) * torch.exp(self.log_variance)[:, None, None]
        )
        return mean, variance, terms

    def _conditional(self, x: Tensor, m: Tensor) -> LayerMoments:
        """``forward`` with inducing means m [G, Q, M], without the prior mean; variance in units of
        σ²."""
        mean, variance, terms = sparse_conditional(
            x=x,
            Z=self.inducing,
            w=torch.exp(-2 * self.log_lengthscale),
            m=m,
            C=self.q_tril,
            shape=self.shape,
            jitter=self.jitter,
            name=self.name,
        )
        return mean * torch.exp(0.5 * self.log_variance)[:, None, None], variance, terms

    @torch.no_grad()
    def sample_prior(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of every process from its prior, jointly at x [N, D] or [G, N, D]: [G, Q, N]."""
        lengthscale = self.log_lengthscale.exp()
        x = x.expand(len(lengthscale), *x.shape[-2:])
        K = kernel(x, x, lengthscale, self.log_variance.exp(), self.shape)
        scale = self.log_variance.exp()[:, None, None]
        L, _ = jittered_cholesky(K / scale, self.jitter, f"the prior of {self.name}")
        size = (len(lengthscale), K.shape[-1], self.n_outputs)
        f = (scale.sqrt() * (L @ standard_normal(size, generator, K))).mT
        prior_mean = self.prior_mean(x)
        return f if prior_mean is None else f + prior_mean

    @torch.no_grad()
    def propagate(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """A representative function of the layer at x: the mean of q or, if it is zero, a draw of
        the inducing values from the prior, so that the next layer's inducing inputs differ
        initially."""
        if self.mean_weight is None and not self.q_mean.any():
            return self._conditional(x, normal_like(self.q_mean, generator))[0]
        return self(x)[0]
