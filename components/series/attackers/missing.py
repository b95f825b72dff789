"""Observations lost in transmission."""

from __future__ import annotations

import math

from torch import Tensor

from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.registry import register
from components.series.attackers.bursts import BurstContamination


@register("attacker", "missing")
class Missing(BurstContamination):
    """Removes observations with a given probability, independently or in runs.

    y'_t = NaN where b_t = 1, in all coordinates, and y_t elsewhere; b_t ~ Bernoulli(p_c)
    independently, or a stationary two-state chain with runs of ones of mean length
    ``run_length`` (Gilbert's burst channel).  Observations are [R, T, dy].  The remaining
    observations have the clean noise law, so an oracle needs no other.

    Source: Gilbert (1960).
    """

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A copy of the observations [R, T, dy] with NaN for the lost ones."""
        y = clean.y
        is_missing = self.draw_bursts(y, rng)
        return y.masked_fill(is_missing.unsqueeze(-1), math.nan)

    def mixture(self, Sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Noise law of the remaining observations for clean noise N(0, Σ): the same law.

        Returns:
            weights [1], covariances [1, dy, dy].
        """
        return Sigma.new_ones(1), Sigma.unsqueeze(0)
