"""Variational inference of a network's weights by a Gaussian with all their covariances."""

from __future__ import annotations

from typing import Literal

from components.inference.variational.gaussian_vi import GaussianVI
from components.registry import register


@register("inference", "full_rank_vi")
class FullRankVI(GaussianVI):
    """Full-rank variational inference: ``gaussian_vi`` with a full Cholesky factor, as it suits the weights of a network.

        q(θ) = N(m, L Lᵀ), θ [P] the weights and a learned log σ²;  L(φ) = Σ_n E_q[log p(y_n|x_n, θ)] − KL(q ‖ p), ascended by ĝ

    It is that method and no other: what differs are the defaults, for a network's m does not start at zero (a saddle) but where
    training does, with narrow spreads and small steps.  A step costs P² numbers: 11 million for 3,301 weights.

    Source: Titsias and Lázaro-Gredilla (2014), Algorithm 1; Kucukelbir et al. (2017), section 2.4."""

    covariance: Literal["full"]
