"""Heavy-tailed noise on some of the observations."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.attackers import Contamination
from components.contracts.roles import ZeroToOne
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register


def student_t(u: Tensor, v: Tensor, df: float) -> Tensor:
    """cos(2πv) √(ν(u^{−2/ν} − 1)) ~ t_ν from two uniforms, u in (0, 1].

    Source: Bailey (1994), eq. (2)."""
    return torch.cos(2 * math.pi * v) * torch.sqrt(df * torch.expm1(-2 / df * u.log()))


@register("attacker", "student_t_outliers")
class StudentTOutliers(Contamination):
    """Replaces an observation's noise by Student's t noise, or adds it, with a small probability.

    b_t ~ Bernoulli(p_c), τ_t ~ t_ν, independent over t and replicates.  ``replace``: y'_t = (1 −
    b_t) y_t + b_t (E[y_t | x_t] + s τ_t), the mixture of (6.18); ``add``: y'_t = y_t + b_t s τ_t.
    Each coordinate has its own draw τ_t, or all ``share`` one.  The density of the corrupted noise
    is known only for ``replace`` without ``share``.

    Raises ConfigMismatchError for ``replace`` if the means of the observations are unknown.

    Source: Boustati (2021), eq. (6.18) and appendix D.3.4."""

    knowledge = "black box"
    probability: ZeroToOne
    df: PositiveFloat
    scale: PositiveFloat
    mode: Literal["replace", "add"]
    shared: bool

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        y = clean.y
        wide = (*y.shape[:2], 1 if self.shared else y.shape[2])
        # Always in float64: a uniform of 24 bits cuts off the tail.
        hit, u, v = (
            torch.rand(shape, generator=rng.attack, device=y.device, dtype=torch.float64)
            for shape in (y.shape[:2], wide, wide)
        )
        tau = student_t(1 - u, v, self.df)
        if self.mode == "add":
            base = y
        elif clean.mean is None:
            raise ConfigMismatchError(
                f"attacker={self.name}: mode=replace requires a known E[y|x]; set attacker.mode=add, or use a simulated dataset"
            )
        else:
            base = clean.mean
        struck = (hit < self.probability).unsqueeze(-1) & ~y.isnan()
        return torch.where(struck, (base + self.scale * tau).to(y), y)

    def log_noise_density(self, deviation: Tensor, Sigma: Tensor) -> Tensor:
        """log[(1 − p_c) N(ε | 0, Σ) + p_c ∏_j t_ν(ε_j / s) / s] of ε = y' − E[y | x] [..., dy] ->
        [...].

        Raises:
            ConfigMismatchError: the density is unknown: the noise is added, or coordinates share a
                draw.
        """
        if self.mode == "add" or self.shared:
            key = "mode=replace" if self.mode == "add" else "shared=false"
            raise ConfigMismatchError(
                f"attacker={self.name}: the density of the corrupted noise is not known; set attacker.{key}"
            )
        gaussian = torch.distributions.MultivariateNormal(
            Sigma.new_zeros(Sigma.shape[-1]), Sigma, validate_args=False
        )
        heavy = torch.distributions.StudentT(self.df, 0.0, self.scale, validate_args=False)
        rate = torch.as_tensor(self.probability).to(deviation)
        clean = (1 - rate).log() + gaussian.log_prob(deviation)
        corrupted = rate.log() + heavy.log_prob(deviation).sum(-1)
        return torch.logaddexp(clean, corrupted)
