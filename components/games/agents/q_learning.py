"""Q-learning without a model of the opponent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilableDecisionMaker
from components.registry import register


@dataclass
class Values:
    """Action values Q(s, a)."""

    q: QFunction  # one action of the others: the same value for all their actions


@register("inference", "q_learning")
class QLearning(CompilableDecisionMaker[Values]):
    """Independent Q-learning: the adversary is treated as part of the environment.

    Q(s,a) := (1 − α) Q(s,a) + α (r + γ max_a' Q(s',a')); a is drawn from the ε-greedy or the
    softmax policy of Q(s,·). If s' ends the episode, its value is 0.  One step is one episode of
    all R replicates; rewards are in the game's units.

    Source: Gallego (2021), eq. (4.1)."""

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Values:
        return Values(values.fresh(seat.own, 1))

    def think(self, mind: Values, s: Tensor, episode: int) -> Tensor:
        return mind.q.q(s)[..., 0]

    def learn(self, mind: Values, seen: Transition, episode: int) -> None:
        value = self.think(mind, seen.s_next, episode).amax(-1)
        self.update(mind.q, seen, torch.zeros_like(seen.b), value)  # eq. (4.1)

    # Compiled: level 1 against an opponent with one action
    def has_loop(self) -> bool:
        return type(self) is QLearning

    def tables(self, mind: Values) -> list[QFunction]:
        return [mind.q]
