"""Random noise, the control for gradient attacks."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor

from components.attackers.evasion.ascent import InBall
from components.attackers.norms import NORMS
from components.contracts.attackers import Evasion
from components.contracts.streams import Rng
from components.contracts.victim import Victim
from components.maths.spacing import row_numbers
from components.registry import register


@register("attacker", "random_noise")
class RandomNoise(InBall, Evasion):
    """Uniform random points of the ball, the control for gradient attacks.

    x' = clip(x + δ), δ ~ U(‖δ‖ ≤ ε); a row keeps the first of ``repeats`` draws that is
    misclassified, otherwise the last.  The attack queries predicted labels only, one query
    per draw.  x [B, D], y [B, T].

    Source: Carlini et al. (2019), section 4.3.
    """

    follows_gradient = False
    knowledge = "black box"

    repeats: PositiveInt

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        x_adv = x.clone()
        pending = row_numbers(x)
        for repeat in range(self.repeats):
            # Noise for all rows, so that a row's noise does not depend on which others are broken.
            delta = NORMS[self.norm].start(x, eps, rng.attack)
            x_adv[pending] = victim.clip(x[pending] + delta[pending])
            if repeat + 1 < self.repeats:
                pending = pending[~victim.broken(x_adv[pending], y[pending], rng.attack)]
                if len(pending) == 0:
                    break
        return x_adv
