"""What all decision makers share who choose by the values of their actions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, TypeVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.inference.games.exploration import Exploration, explored
from components.inference.games.player import Player
from components.maths.policies import PolicyName, probabilities
from components.problems.game import Transition

K = TypeVar("K")  # what a decision maker keeps in mind


class DecisionMaker(Player[K], Generic[K]):
    """A player who chooses by a policy of her actions' values and learns from every move.

    Where s' ends the episode nothing is to come; where the horizon cuts it short there is, unless ``bootstrap_at_horizon``
    is off."""

    before: ClassVar[dict[str, object]] = {"bootstrap_at_end": False, "bootstrap_at_horizon": True}

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    policy: PolicyName
    epsilon: Exploration
    temperature: PositiveFloat
    bootstrap_at_end: bool
    bootstrap_at_horizon: bool

    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        epsilon = explored(self.epsilon, episode)
        return probabilities(self.think(mind, s, episode), self.policy, epsilon, self.temperature)

    def ahead(self, seen: Transition, value: Tensor) -> Tensor:
        """γ V(s') [R] as far as there is anything to come after this move; value [R]."""
        if seen.cut and not self.bootstrap_at_horizon:
            return torch.zeros_like(value)
        if seen.done is None or self.bootstrap_at_end:
            return self.gamma * value
        return torch.where(seen.done, 0.0, self.gamma * value)
