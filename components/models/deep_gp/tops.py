"""Top layers: from each task's features to the moments of its latent functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.maths.sparse_gp import LayerMoments
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.levels import fold_samples


class IndependentTop(nn.Module):
    """f^t ~ GP with an ARD kernel, independent between tasks; a task has C outputs that share its
    kernel.

    Source: Boustati (2021), eq. (3.15) and section 3.3.2.
    """

    def __init__(self, layer: GPLayer):
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor) -> LayerMoments:
        """Λ [S, T, n, D] -> mean and variance of f [S, T, n, C], divergence and jitter."""
        S, T, n, _ = features.shape
        mean, variance, terms = self.layer(fold_samples(features))  # [T, C, S · n]

        def unfold(f: Tensor) -> Tensor:
            return f.reshape(T, -1, S, n).permute(2, 0, 3, 1)

        return unfold(mean), unfold(variance), terms

    def sample_prior(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of f from the prior, jointly at Λ [1, T, n, D]: [1, T, n, C]."""
        return self.layer.sample_prior(features[0], generator).mT[None]


class CoregionalisedTop(nn.Module):
    """One coregionalised GP: f^t_c(λ) = Σ_r a^t_cr u_r(λ), u_r ~ GP(0, k), so cov(f^t, f^s) = (A
    Aᵀ)_ts k(λ, λ').

    Source: Boustati (2021), cMDGP in section 3.3.2; Bonilla et al. (2007).
    """

    def __init__(self, layer: GPLayer, mixing: Tensor):
        super().__init__()
        self.layer = layer
        self.mixing = nn.Parameter(mixing)  # A [T, C, R]

    def forward(self, features: Tensor) -> LayerMoments:
        """Λ [S, T, n, D] -> mean and variance of f [S, T, n, C], divergence and jitter."""
        S, T, n, D = features.shape
        mean, variance, terms = self.layer(features.reshape(S * T * n, D))  # [1, R, S · T · n]
        mean, variance = (f.reshape(-1, S, T, n).permute(1, 2, 3, 0) for f in (mean, variance))
        return (
            torch.matmul(mean, self.mixing.mT),
            torch.matmul(variance, self.mixing.square().mT),
            terms,
        )

    def sample_prior(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of f from the prior, jointly at Λ [1, T, n, D]: [1, T, n, C]."""
        _, T, n, D = features.shape
        u = self.layer.sample_prior(features.reshape(T * n, D), generator)[0]  # [R, T · n]
        return torch.matmul(u.T.reshape(1, T, n, -1), self.mixing.mT)


Top = IndependentTop | CoregionalisedTop
