"""Large Gaussian noise on some of the observations."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.attackers import Contamination
from components.contracts.roles import ZeroToOne
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import normal_like, standard_uniform
from components.registry import register


@register("attacker", "gaussian_contamination")
class GaussianContamination(Contamination):
    """Adds large Gaussian noise to each observation with a small probability.

    y'_t = y_t + b_t ξ_t, b_t ~ Bernoulli(p_c), ξ_t ~ N(0, s² I), independent over t and replicates.
    "Per observation" is per time: a corrupted y_t is corrupted in all its coordinates, as in the
    code published with the thesis.

    Source: Boustati (2021), appendix D.3.3."""

    knowledge = "black box"
    probability: ZeroToOne
    sd: PositiveFloat

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """Corrupted copy of the observations [R, T, dy].

        Draws from ``rng.attack`` only, so the clean noise stays the same.
        """
        y = clean.y
        u = standard_uniform(y.shape[:2], rng.attack, y)  # [R, T]
        z = normal_like(y, rng.attack)  # [R, T, dy]
        return torch.where((u < self.probability).unsqueeze(-1), y + self.sd * z, y)

    def mixture(self, Sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Law of the corrupted noise when the clean noise is N(0, Σ), Σ [..., dy, dy]: weights [2],
        covariances [2, ...]."""
        weights = Sigma.new_tensor([1 - self.probability, self.probability])
        wide = Sigma + self.sd**2 * torch.eye(Sigma.shape[-1]).to(Sigma)
        return weights, torch.stack([Sigma, wide])
