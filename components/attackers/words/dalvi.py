"""Dalvi's minimum-cost attack."""

from __future__ import annotations

from pydantic import PositiveFloat
from torch import Tensor

from components.attackers.words.changes import malicious
from components.attackers.words.integer_programme import minimum_cost_attack
from components.contracts.attackers import Evasion
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.contracts.victim import Against, Direction, Victim
from components.registry import register


@register("attacker", "dalvi")
class Dalvi(Evasion):
    """Minimum-cost evasion of naive Bayes: the cheapest word changes that make a spam email
    classified as innocent.

    min Σ_i C(x_i, x'_i) δ_i  s.t.  Σ_i [log p(x_i|y_1)/p(x_i|y_2) − log p(x'_i|y_1)/p(x'_i|y_2)] δ_i ≥ gap(x), δ ∈ {0, 1}^D,
    Σ_i δ_i ≤ ε, gap(x) = log p(y_1|x)/p(y_2|x), the log odds to remove.  Emails without a solution
    within ε changes stay unchanged.  The attack is on naive Bayes itself, without its defence.  x
    [B, D] in {0, 1}, y [B, 1].

    Raises ConfigMismatchError for a classifier that is not naive Bayes.

    Source: Gallego (2021), eq. (3.4); Dalvi et al. (2004), section 3."""

    requires = Requirements(targets={"binary"})
    domain = "binary"
    knowledge = "white box"

    insertion_cost: PositiveFloat
    removal_cost: PositiveFloat | None

    def measure(self) -> Direction:
        return "insertion" if self.removal_cost is None else "flip"

    def targeted_predictions(self) -> Against:
        return "undefended"

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam = malicious(y)
        out = x.clone()
        if eps > 0 and bool(spam.any()):
            out[spam] = minimum_cost_attack(
                victim.posterior, x[spam], self.insertion_cost, self.removal_cost, int(eps)
            )
        return out
