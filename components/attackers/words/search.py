"""What the attacks that search for the least malicious mail declare in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, NonNegativeInt
from torch import Tensor

from components.attackers.words.changes import (
    least_malicious,
    malicious,
    seen_by,
)
from components.contracts.streams import Rng
from components.contracts.victim import Against, Direction, Victim


class WordSearch(BaseModel):
    """Malicious mails become the least malicious of those that ``direction`` reaches with ε changed words."""

    direction: ClassVar[Direction]

    exact: NonNegativeInt
    against: Against

    def measure(self) -> Direction:
        return self.direction

    def looks_at(self) -> Against:
        return self.against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam, out, victim = malicious(y), x.clone(), seen_by(victim, self.against)
        if eps > 0 and bool(spam.any()):
            out[spam] = least_malicious(victim, x[spam], int(eps), self.exact, self.direction, rng.attack)
        return out
