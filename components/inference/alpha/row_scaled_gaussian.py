"""A Gaussian with all covariances whose correlations are learnt in units of the spreads."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from components.inference.variational.global_gaussian import GlobalGaussian, JointByRows, Noise


class RowScaledGaussian(GlobalGaussian):
    """q(θ) = N(m, L Lᵀ), L = diag(s) (I + N/√P), N strictly lower triangular; parameters m [P], log s [P] and N [P, P].

    Adam's steps are as long where the gradient is noise alone, so that each entry below the diagonal of a plain L walks at
    random by about the same amount, whatever the spread of its weight, and the P entries of a row add up: on 402 weights the
    walk drowns what is learnt.  Here a step of an entry is 1/√P of the spread of its row, so that the walk of a whole row
    is of the order of a step of s itself."""

    def __init__(self, target: JointByRows, mean: Tensor, std: float, noise: Noise):
        super().__init__(target, mean, std, False, noise)
        self.lower = nn.Parameter(mean.new_zeros(len(mean), len(mean)))

    @property
    def relative(self) -> Tensor:
        """N/√P, what is on and above the diagonal (where nothing ever moves) cut off [P, P]."""
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
        """KL(q ‖ p) [] of a prior N(0, diag σ₀²), without a triangular solve; otherwise 0, for rows have it all."""
        prior = self.target.prior_std
        if prior is None:
            return self.mean.new_zeros(())
        variance = (2 * self.log_std).exp() * (1 + self.relative.square().sum(1))  # of each weight under q
        fit = ((variance + self.mean.square()) / prior.square()).sum() - len(prior)
        return 0.5 * fit + (prior.log() - self.log_std).sum()
