"""Flips of words."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeInt
from torch import Tensor

from components.attackers.victim import Victim
from components.attackers.words.changes import (
    Against,
    WordSizes,
    least_malicious,
    malicious,
    random_changes,
    seen_by,
)
from components.interfaces import Attacker, Domain, Rng
from components.registry import register


@register("attacker", "word_flip")
class WordFlip(Attacker):
    """Word flips: adds to a spam mail, or takes from it, the few words whose change makes it look most innocent.

    x' = argmin_{z ∈ Z(x)} p_C(y_1|z), Z(x) all mails that differ from x in at most ε words: the attacker
    knows the classifier, which leaves no uncertainty in (3.11).  Every set of at most ``exact`` words is tried, further
    words are added greedily.  Mails of class 0 are left alone (integrity violation).  x [B, D] in {0, 1}, y [B, 1],
    ε = 0, 1, 2, … changed words.

    Source: Gallego (2021), eq. (3.11) and section 3.6.1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary"})
    domain: ClassVar[Domain] = "binary"
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: WordSizes
    exact: NonNegativeInt
    against: Against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam, out, victim = malicious(y), x.clone(), seen_by(victim, self.against)
        if eps > 0 and bool(spam.any()):
            out[spam] = least_malicious(victim, x[spam], int(eps), self.exact, "flip", rng.attack)
        return out

    def random(self, x: Tensor, y: Tensor, eps: float, generator: torch.Generator) -> Tensor:
        """The control: as many words chosen at random."""
        return random_changes(x, y, int(eps), "flip", generator)
