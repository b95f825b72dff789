"""Noise that is now and then blown up by a random factor."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.attackers.contamination.exponential_scale import log_scale_integral
from components.contracts.attackers import Contamination, Knowledge
from components.contracts.roles import Probability
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.registry import register
from components.trouble import ConfigMismatchError


@register("attacker", "multiplicative_exponential")
class MultiplicativeExponential(Contamination):
    """Multiplies an observation's noise, with small probability, by an exponential factor.

    ε_t ← ξ_t ε_t where b_t = 1, b_t ~ Bernoulli(p_c), ξ_t ~ Exp of mean ``scale``,
    ε_t = y_t − h(x_t); one factor for all coordinates of y_t [dy].  The noise keeps its
    sign, and with it any asymmetry.  N(0, Σ) noise becomes a mixture over all sizes of ξ:
    an infinite mixture, with a density by quadrature that the oracle reads.

    Raises:
        Misfit: the noise cannot be separated from the observations, as in recorded data.

    Source: Boustati (2021), section 6.5.3 and appendix D.3.5.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"noise_density"})
    knowledge: ClassVar[Knowledge] = "black box"
    probability: Probability
    scale: PositiveFloat

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A corrupted copy of the observations [R, T, dy]: h(x_t) + ξ_t (y_t − h(x_t)) where it
        strikes."""
        y = clean.y
        mean = clean.mean
        if mean is None:
            raise ConfigMismatchError(
                f"attacker={self.name}: multiplies the noise of the observations, which this dataset does not know apart from "
                "them; use a simulated one, or attacker=gaussian_contamination"
            )
        u = torch.rand(y.shape[:2], generator=rng.attack, device=y.device, dtype=y.dtype)  # [R, T]
        # 1 − u lies in (0, 1]: its logarithm is finite.
        xi = (
            -self.scale
            * torch.rand(y.shape[:2], generator=rng.attack, device=y.device, dtype=y.dtype)
            .neg()
            .log1p()
        )
        return torch.where(
            (u < self.probability).unsqueeze(-1), mean + xi.unsqueeze(-1) * (y - mean), y
        )

    def log_noise_density(self, deviation: Tensor, Sigma: Tensor) -> Tensor:
        """log[(1 − p_c) N(ε | 0, Σ) + p_c ∫ Exp(ξ) N(ε | 0, ξ² Σ) dξ] of ε = y' − E[y | x] [...,
        dy] -> [...].

        With r² = εᵀ Σ⁻¹ ε and s the mean of ξ the integral is (2π)^{−dy/2} |Σ|^{−½} s^{−dy} ∫
        u^{−dy} e^{−u − (r/s)²/(2u²)} du, which has no bound at ε = 0: for dy > 1 weights have a
        heavy tail."""
        d = deviation.shape[-1]
        L = torch.linalg.cholesky(Sigma)
        r = torch.einsum("...ij,...j->...i", torch.linalg.inv(L), deviation).norm(dim=-1).double()
        constant = -L.diagonal(dim1=-2, dim2=-1).log().sum(-1).double() - 0.5 * d * math.log(
            2 * math.pi
        )
        rate = r.new_tensor(self.probability)
        blown = log_scale_integral(r / self.scale, d) - d * math.log(self.scale)
        mixed = torch.logaddexp((1 - rate).log() - 0.5 * r.square(), rate.log() + blown)
        return (constant + mixed).to(deviation)
