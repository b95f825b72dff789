"""Adversarial classification by adversarial risk analysis."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.attackers.words.beliefs import BELIEFS, estimate_frequency, frequency_within
from components.contracts.roles import ZeroToOne
from components.contracts.victim import Direction
from components.inference.defences.origins import AdversaryAwareClassifier, Origins, OriginsDefence
from components.inference.point.fit import FitState
from components.registry import register


@register("inference", "acra")
class ACRA(OriginsDefence):
    """ACRA: generative classifier that averages over the possible original emails.

        y*(x') = argmax_{y_c} u(y_c, y_1) p(y_1) Σ_{x ∈ X'} p̂(x'|x, y_1) p(x|y_1)
                 + u(y_c, y_2) p(y_2) p(x'|y_2)

    The average is over the emails x that a random attacker may have changed into x'.  X' holds the
    x that differ from x' in at most ``changes`` words;  p̂(x'|x, y_1) is the share of K draws in
    which x' is the argmin_z of P^A_z ~ Beta with mean p_C(y_1|z) and variance ``variance`` · v(r).
    With a ``precision``, K is the size of a pilot, and each pair (x, x') gets the number of draws
    that its variance estimate p̂(1 − p̂) requires.  With variance 0 the attacker is known, as in
    the classifier of Dalvi et al. (2004).  Class 1 is y_1, the malicious one; x' [B, D] in {0, 1}.

    Source: Gallego (2021), Algorithm 3.1, eqs (3.8) to (3.12); Naveiro et al. (2019).
    """

    direction: Direction
    variance: ZeroToOne
    draws: PositiveInt
    precision: Annotated[float, Field(gt=0, lt=0.5)] | None
    candidates: PositiveInt

    def posterior(self, state: FitState) -> AdversaryAwareClassifier:
        return self.aware(state, self.attack, self.direction)

    def attack(self, pairs: Origins, generator: torch.Generator) -> Tensor:
        """p̂(x'|x, y_1) of each pair [P]; 0 where x' is not among the least malicious-looking
        candidates of x."""
        # [P, m]
        odds, set_index = pairs.odds.topk(
            min(self.candidates, pairs.odds.shape[1]), 1, largest=False
        )
        is_sent = set_index == pairs.sent[:, None]
        rows = is_sent.any(1).nonzero()[:, 0]
        p = torch.zeros_like(pairs.log_p)
        for part in rows.split(max(1, BELIEFS // (self.draws * odds.shape[1]))):
            game = is_sent[part].long().argmax(1), odds[part], self.variance, self.draws
            if self.precision is None or self.variance == 0:
                p[part] = estimate_frequency(*game, generator)
            else:
                p[part] = frequency_within(*game, self.precision, generator)
        return p
