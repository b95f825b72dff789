"""What the attacks that search for the least malicious mail declare in common."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import BaseModel, NonNegativeInt
from torch import Tensor

from components.attackers.victim import Victim
from components.attackers.words.changes import (
    Against,
    Direction,
    WordSizes,
    least_malicious,
    malicious,
    random_changes,
    seen_by,
)
from components.contracts.streams import Rng


class WordSearch(BaseModel):
    """Malicious mails become the least malicious of those that ``direction`` reaches with ε changed words."""

    direction: ClassVar[Direction]

    eps: WordSizes
    exact: NonNegativeInt
    against: Against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam, out, victim = malicious(y), x.clone(), seen_by(victim, self.against)
        if eps > 0 and bool(spam.any()):
            out[spam] = least_malicious(victim, x[spam], int(eps), self.exact, self.direction, rng.attack)
        return out

    def random(self, x: Tensor, y: Tensor, eps: float, generator: torch.Generator) -> Tensor:
        """The control: as many words chosen at random."""
        return random_changes(x, y, int(eps), self.direction, generator)
