"""Non-adaptive opponent."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import NonNegativeFloat, field_validator
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.policies import draw_action
from components.registry import register


@register("attacker", "fixed_policy")
class FixedPolicy(Opponent[Tensor]):
    """Opponent that draws all actions from fixed probabilities.

    ``plays`` is cooperate (its first action), defect (its last), random (uniform), or the
    probability of each action.

    Raises:
        ConfigMismatchError: the numbers of probabilities and actions differ.

    Source: Gallego (2021), sections 4.3.1 (non-strategic opponents) and 4.5.4 (a selfish
    operator).
    """

    knowledge = "black box"

    plays: Literal["cooperate", "defect", "random"] | list[NonNegativeFloat]

    @field_validator("plays")
    @classmethod
    def _check_probabilities(cls, plays: str | list[float]) -> str | list[float]:
        if not isinstance(plays, str) and not math.isclose(sum(plays), 1, abs_tol=1e-6):
            raise ValueError(f"probabilities must sum to 1, but sum to {sum(plays):g}")
        return plays

    def probabilities(self, n: int) -> Tensor:
        """Probabilities [B] of n actions."""
        if self.plays == "random":
            return torch.full((n,), 1 / n)
        if not isinstance(self.plays, str):
            return torch.tensor(self.plays)
        p = torch.zeros(n)
        p[0 if self.plays == "cooperate" else -1] = 1
        return p

    def reset(self, seat: Seat, rng: Rng) -> Tensor:
        """Return the probabilities [R, B]."""
        p = self.probabilities(seat.own)
        if len(p) != seat.own:
            raise ConfigMismatchError(
                f"attacker.plays: {len(p)} probabilities for {seat.own} actions"
            )
        return p.to(seat.device, seat.dtype).expand(seat.replicates, -1).clone()

    def act(self, state: Tensor, turn: Turn, rng: Rng) -> Tensor:
        return draw_action(state, rng.attack)

    def policy_in(self, state: Tensor, s: Tensor, episode: int) -> Tensor:
        return state

    def observe(self, state: Tensor, move: Move) -> Tensor:
        return state
