"""The random attacker of the defender's model."""

from __future__ import annotations

import torch
from torch import Tensor

from components.attackers.words.beliefs import attack_frequencies, random_beliefs
from components.attackers.words.changes import (
    CHUNK,
    change_sets,
    flip_words,
    log_odds_malicious,
    possible,
)
from components.attackers.words.search import WordAttack
from components.contracts.roles import ZeroToOne
from components.contracts.victim import Direction, Victim
from components.registry import register


@register("attacker", "ara")
class ARA(WordAttack):
    """Adversarial risk analysis attacker: draws x' from the defender's beliefs p_C(x'|x) about an
    attack on words.
    X'(x, y_1) = argmin_{z ∈ Z(x)} P^A_z,  P^A_z ~ Beta with mean r(z) = p_C(y_1|z) and
    variance ``variance`` · v(r); Z(x) contains the emails within ε changed words.
    ``frequencies`` estimates p_C(x'|x) by the share of K draws (3.12).  Emails of class 0
    stay unchanged.  x [B, D] in {0, 1}, y [B, 1].

    Source: Gallego (2021), eqs (3.11) and (3.12).
    """

    knowledge = "grey box"

    direction: Direction
    variance: ZeroToOne

    def measure(self) -> Direction:
        return self.direction

    def change(self, victim: Victim, x: Tensor, n: int, generator: torch.Generator) -> Tensor:
        sets = change_sets(x.shape[1], n).to(x.device)
        parts = []
        for part in x.split(max(1, CHUNK // len(sets))):
            r = self.candidates(victim, part, sets, generator)
            beliefs = random_beliefs(r.nan_to_num(posinf=0.0), self.variance, 1, generator)[0]
            parts.append(
                flip_words(part, sets[beliefs.masked_fill(r.isinf(), torch.inf).argmin(1)])
            )
        return torch.cat(parts)

    def candidates(
        self, victim: Victim, x: Tensor, sets: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Log odds of r(z) for the z from every set [M, k] and x [B, D]; ∞ for impossible changes.
        [B, M]"""
        can = possible(x, sets, self.direction)
        mail, set_index = can.nonzero(as_tuple=True)
        r = x.new_full(can.shape, torch.inf)
        r[can] = log_odds_malicious(victim, flip_words(x[mail], sets[set_index]), generator)
        return r

    def frequencies(
        self, victim: Victim, x: Tensor, eps: int, n: int, generator: torch.Generator
    ) -> Tensor:
        """p̂_C(x'|x) for every set of at most ε words from n draws, [B, M]."""
        r = self.candidates(victim, x, change_sets(x.shape[1], eps).to(x.device), generator)
        return attack_frequencies(r, self.variance, n, generator)
