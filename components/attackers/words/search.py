"""Base classes of attacks on the words of emails."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import NonNegativeInt
from torch import Tensor

from components.attackers.words.changes import least_malicious, malicious, victim_as_attacked
from components.contracts.attackers import Evasion
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.contracts.victim import Against, Direction, Victim


class WordAttack(Evasion):
    """An attack that changes at most ε words of each malicious email."""

    requires = Requirements(targets={"binary"})
    domain = "binary"

    # p(y|x) to lower: defended | undefended (the classifier under a defence such as acra)
    against: Against

    def targeted_predictions(self) -> Against:
        return self.against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam = malicious(y)
        out = x.clone()
        victim = victim_as_attacked(victim, self.against)
        if eps > 0 and bool(spam.any()):
            out[spam] = self.change(victim, x[spam], int(eps), rng.attack)
        return out

    @abstractmethod
    def change(self, victim: Victim, x: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Malicious emails x [B, D] with at most n words changed."""


class WordSearch(WordAttack):
    """Replaces malicious emails by the least malicious ones within ε changed words in
    ``direction``."""

    direction: ClassVar[Direction]

    # number of words up to which all sets are evaluated (1,486 sets of 54 words for 2, 26,290 for
    # 3); further words are added greedily; >= 0
    exact: NonNegativeInt

    def measure(self) -> Direction:
        return self.direction

    def change(self, victim: Victim, x: Tensor, n: int, generator: torch.Generator) -> Tensor:
        return least_malicious(victim, x, n, self.exact, self.direction, generator)
