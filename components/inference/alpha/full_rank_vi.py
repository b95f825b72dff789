"""Variational inference for a network's weights with a full-covariance Gaussian."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.gaussian_vi import GaussianVI
from components.inference.variational.global_gaussian import GlobalGaussian, Noise
from components.registry import register


class RowScaledGaussian(GlobalGaussian):
    """Full-covariance Gaussian q(θ) = N(m, L Lᵀ) with a row-scaled Cholesky factor.

    L = diag(s) (I + N/√P), N strictly lower triangular; parameters m [P], log s [P] and N
    [P, P].

    Adam takes steps of the same length even if the gradient is pure noise.  Each entry below
    the diagonal of a plain L then performs a random walk of about the same size for any
    spread of its weight, and the P entries of a row add up: with 402 weights the random walk
    dominates the signal.  Here the step of an entry is 1/√P of the spread of its row, so the random
    walk of a whole row has the size of about one step of s.
    """

    def __init__(self, target: RowwiseLogJoint, mean: Tensor, std: float, noise: Noise):
        super().__init__(target, mean, std, False, noise)
        self.lower = nn.Parameter(mean.new_zeros(len(mean), len(mean)))

    @property
    def relative(self) -> Tensor:
        """N/√P [P, P] with constant zeros on and above the diagonal."""
        assert self.lower is not None
        return self.lower.tril(-1) / math.sqrt(len(self.mean))

    @property
    def scale_tril(self) -> Tensor:
        identity = torch.eye(len(self.mean), dtype=self.mean.dtype, device=self.mean.device)
        return self.log_std.exp()[:, None] * (identity + self.relative)

    def transform(self, noise: Tensor) -> Tensor:
        """θ = m + s (ε + N ε/√P) of noise ε [..., P]."""
        return self.mean + self.log_std.exp() * (noise + noise @ self.relative.T)

    def kl(self) -> Tensor:
        """KL(q ‖ p) [] for a prior N(0, diag σ₀²), without a triangular solve; otherwise 0, because
        the rows then include it."""
        prior = self.target.prior_std
        if prior is None:
            return self.mean.new_zeros(())
        # E_q[θ²] of each weight
        variance = (2 * self.log_std).exp() * (1 + self.relative.square().sum(1))
        fit = ((variance + self.mean.square()) / prior.square()).sum() - len(prior)
        return 0.5 * fit + (prior.log() - self.log_std).sum()


@register("inference", "full_rank_vi")
class FullRankVI(GaussianVI):
    """Full-rank variational inference for network weights, with a full Cholesky factor.

        q(θ) = N(m, L Lᵀ), L = diag(s) (I + N/√P), N strictly lower triangular
        θ [P] the weights and a learned log σ²
        L(φ) = Σ_n E_q[log p(y_n|x_n, θ)] − KL(q ‖ p), ascended by ĝ in φ = (m, log s, N)

    The family and the bound are as in ``gaussian_vi``; parameters and defaults differ.
    If q were parametrised by L itself, the P entries of a row would follow a random walk with
    Adam's step size, which is wider than the posterior on the 402 weights of a small network; so
    entries of N are in units of s/√P.  m does not start at zero (a saddle of networks) but at the
    initial weights of training, and ten draws a step cost little compared with the P² numbers (11
    million for 3,301 weights) that a step updates.

    Source: Titsias and Lázaro-Gredilla (2014), Algorithm 1; Kucukelbir et al. (2017),
    section 2.4.
    """

    covariance: Literal["full"]

    def family(self, target: RowwiseLogJoint, mean: Tensor) -> RowScaledGaussian:
        return RowScaledGaussian(target, mean, self.initial_std, self.noise)
