"""Common declarations of attacks that search for the least malicious mail."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, NonNegativeInt
from torch import Tensor

from components.attackers.words.changes import (
    least_malicious,
    malicious,
    victim_as_attacked,
)
from components.contracts.streams import Rng
from components.contracts.victim import Against, Direction, Victim


class WordSearch(BaseModel):
    """Malicious mails become the least malicious of those that ``direction`` reaches with ε changed
    words."""

    direction: ClassVar[Direction]

    # up to this many words every set is tried (1,486 sets of 54 words at 2, 26,290 at 3), beyond
    # greedily; >= 0
    exact: NonNegativeInt
    # p(y|x) to lower: defended | undefended (the classifier under a defence such as acra)
    against: Against

    def measure(self) -> Direction:
        return self.direction

    def looks_at(self) -> Against:
        return self.against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam = malicious(y)
        out = x.clone()
        victim = victim_as_attacked(victim, self.against)
        if eps > 0 and bool(spam.any()):
            out[spam] = least_malicious(
                victim, x[spam], int(eps), self.exact, self.direction, rng.attack
            )
        return out
