"""The attacker as the defender models it: random."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from components.attackers.words.beliefs import attack_frequencies, random_beliefs
from components.attackers.words.changes import (
    CHUNK,
    change_sets,
    flip_words,
    log_odds_malicious,
    malicious,
    possible,
    victim_as_attacked,
)
from components.contracts.attackers import Evasion, Knowledge
from components.contracts.problems import Domain
from components.contracts.requirements import Requirements
from components.contracts.roles import Probability
from components.contracts.streams import Rng
from components.contracts.victim import Against, Direction, Victim
from components.registry import register


@register("attacker", "ara")
class ARA(Evasion):
    """Adversarial risk analysis attacker: draws x' from the defender's beliefs p_C(x'|x).

    The beliefs are about an attack on words.
    X'(x, y_1) = argmin_{z ∈ Z(x)} P^A_z,  P^A_z ~ Beta with mean r(z) = p_C(y_1|z) and
    variance ``variance`` · v(r); Z(x) holds the mails within ε changed words.
    ``frequencies`` estimates p_C(x'|x) by the share of K draws (3.12).  Mails of class 0
    stay unchanged.  x [B, D] in {0, 1}, y [B, 1].

    Source: Gallego (2021), eqs (3.11) and (3.12).
    """

    requires = Requirements(targets=frozenset({"binary"}))
    domain: ClassVar[Domain | None] = "binary"
    knowledge: ClassVar[Knowledge] = "grey box"

    direction: Direction
    variance: Probability
    against: Against

    def measure(self) -> Direction:
        return self.direction

    def looks_at(self) -> Against:
        return self.against

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        spam = malicious(y)
        out = x.clone()
        victim = victim_as_attacked(victim, self.against)
        if eps == 0 or not bool(spam.any()):
            return out
        sets = change_sets(x.shape[1], int(eps)).to(x.device)
        parts = []
        for part in x[spam].split(max(1, CHUNK // len(sets))):
            r = self.candidates(victim, part, sets, rng.attack)
            beliefs = random_beliefs(r.nan_to_num(posinf=0.0), self.variance, 1, rng.attack)[0]
            parts.append(
                flip_words(part, sets[beliefs.masked_fill(r.isinf(), torch.inf).argmin(1)])
            )
        out[spam] = torch.cat(parts)
        return out

    def candidates(
        self, victim: Victim, x: Tensor, sets: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Log odds of r(z) for the z that every set [M, k] makes of x [B, D]; ∞ where it makes
        none. [B, M]"""
        can = possible(x, sets, self.direction)
        mail, set_index = can.nonzero(as_tuple=True)
        r = x.new_full(can.shape, torch.inf)
        r[can] = log_odds_malicious(victim, flip_words(x[mail], sets[set_index]), generator)
        return r

    def frequencies(
        self, victim: Victim, x: Tensor, eps: int, n: int, generator: torch.Generator
    ) -> Tensor:
        """p̂_C(x'|x) of every set of at most ε words from n draws, [B, M]."""
        r = self.candidates(victim, x, change_sets(x.shape[1], eps).to(x.device), generator)
        return attack_frequencies(r, self.variance, n, generator)
