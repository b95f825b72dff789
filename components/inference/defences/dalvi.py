"""The game-theoretic classifier of Dalvi et al."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.victim import Direction
from components.inference.defences.origins import AdversaryAwareClassifier, Origins, OriginsDefence
from components.inference.point.fit import FitState
from components.registry import register


@register("inference", "dalvi")
class DalviDefence(OriginsDefence):
    """Dalvi's classifier: naive Bayes that inverts a known attack x' = a(x).

        y*(x') = argmax_{y_c} u(y_c, y_1) p(y_1) Σ_{x ∈ X'} 1[a(x) = x'] p(x|y_1)
                 + u(y_c, y_2) p(y_2) p(x'|y_2)

    The attack is known with certainty.  a(x) is the cheapest change of at most ``changes``
    words after which naive Bayes classifies x as innocent (3.4); among equally cheap
    changes it is the least malicious-looking one, and x itself if no such change exists or
    none is needed.  With ``attack: least_malicious``, a(x) = argmin_z p(y_1|z).  Class 1 is
    y_1; x' [B, D] in {0, 1}.

    Source: Dalvi et al. (2004), section 4; Gallego (2021), eqs (3.4) and (3.5).
    """

    attack: Literal["minimum_cost", "least_malicious"]
    insertion_cost: PositiveFloat
    removal_cost: PositiveFloat | None

    def posterior(self, state: FitState) -> AdversaryAwareClassifier:
        direction: Direction = "insertion" if self.removal_cost is None else "flip"
        least = self.attack == "least_malicious"
        attack = least_malicious if least else self.cheapest
        return self.aware(state, attack, direction)

    def cheapest(self, pairs: Origins, generator: torch.Generator) -> Tensor:
        """1 where the minimum-cost attack on x is x', else 0 [P]."""
        added = (pairs.sets < pairs.absent.shape[1]).to(pairs.odds)  # [M, k]
        padded = torch.cat([pairs.absent, torch.zeros_like(pairs.absent[:, :1])], 1)  # [P, D + 1]
        n_added = padded[:, pairs.sets].sum(-1).to(pairs.odds)  # [P, M]
        cost = self.insertion_cost * n_added
        if self.removal_cost is not None:
            cost = cost + self.removal_cost * (added.sum(1) - n_added)
        passes = pairs.odds <= 0
        cost = cost.masked_fill(~passes, torch.inf)
        cheap = passes & (cost <= cost.amin(1, keepdim=True) * (1 + 1e-9))
        choice = pairs.odds.masked_fill(~cheap, torch.inf).argmin(1)
        # set 0 is empty
        choice = torch.where((pairs.odds[:, 0] <= 0) | ~passes.any(1), 0, choice)
        return (choice == pairs.sent).to(pairs.log_p)


def least_malicious(pairs: Origins, generator: torch.Generator) -> Tensor:
    """1 where argmin_z p(y_1|z) of x is x', else 0 [P]."""
    return (pairs.odds.argmin(1) == pairs.sent).to(pairs.log_p)
