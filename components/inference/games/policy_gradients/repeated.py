"""Exact values of table games, repeated without end by players with state-only policies.

There are two players.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Repeated:
    """A game in tables as one of its two players sees it: own actions a, the other's b."""

    own: Tensor  # own reward [S, A, B]
    other: Tensor  # the other's reward [S, A, B]
    onward: Tensor  # s' [S, A, B] long
    start: int

    def transitions(self, pair: Tensor) -> Tensor:
        """P(s'|s) = Σ_ab p(a, b|s) 1[s' follows]: pair [..., S, A, B] -> [..., S, S]."""
        states = self.own.shape[0]
        flat = pair.flatten(-2)
        onward = self.onward.flatten(1).expand(flat.shape)
        return torch.zeros(
            *flat.shape[:-1], states, dtype=flat.dtype, device=flat.device
        ).scatter_add(-1, onward, flat)

    def values(self, mine: Tensor, theirs: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
        """Values V(s) = Σ_t γ^t E[r_t | s_0 = s] of both players, which solve (I − γP) V = r.

        Policies mine [..., S, A] and theirs [..., S, B] -> [..., S] each.
        """
        pair = mine.unsqueeze(-1) * theirs.unsqueeze(-2)
        gains = torch.stack(
            [(pair * self.own).sum((-2, -1)), (pair * self.other).sum((-2, -1))], -1
        )
        system = torch.eye(
            self.own.shape[0], dtype=pair.dtype, device=pair.device
        ) - gamma * self.transitions(pair)
        own_value, other = torch.linalg.solve(system, gains).unbind(-1)
        return own_value, other
