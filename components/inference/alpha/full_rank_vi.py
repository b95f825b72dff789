"""Variational inference of a network's weights by a Gaussian with all their covariances."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from components.inference.alpha.row_scaled_gaussian import RowScaledGaussian
from components.inference.variational.gaussian_vi import GaussianVI
from components.inference.variational.global_gaussian import RowwiseLogJoint
from components.registry import register


@register("inference", "full_rank_vi")
class FullRankVI(GaussianVI):
    """Full-rank variational inference for network weights, with a full Cholesky factor.

        q(θ) = N(m, L Lᵀ), L = diag(s) (I + N/√P), N strictly lower triangular
        θ [P] the weights and a learned log σ²
        L(φ) = Σ_n E_q[log p(y_n|x_n, θ)] − KL(q ‖ p), ascended by ĝ in φ = (m, log s, N)

    The family and the bound are as in ``gaussian_vi``; parameters and defaults differ.
    Entries of L itself would follow a random walk with Adam's step size, P to a row, which
    on the 402 weights of a small network is wider than the posterior; entries of N are in
    units of s/√P.  m does not start at zero (a saddle of networks) but at the initial
    weights of training, and ten draws a step cost little compared with the P² numbers (11
    million for 3,301 weights) that a step updates.

    Source: Titsias and Lázaro-Gredilla (2014), Algorithm 1; Kucukelbir et al. (2017),
    section 2.4.
    """

    covariance: Literal["full"]

    def family(self, target: RowwiseLogJoint, mean: Tensor) -> RowScaledGaussian:
        return RowScaledGaussian(target, mean, self.initial_std, self.noise)
