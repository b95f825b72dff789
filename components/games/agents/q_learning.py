"""Q-learning without a model of the opponent."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilableThinker
from components.games.fast.seats import Hierarchy
from components.registry import register


@register("inference", "q_learning")
class QLearning(CompilableThinker):
    """Independent Q-learning: the adversary is treated as part of the environment.

    Q(s,a) := (1 − α) Q(s,a) + α (r + γ max_a' Q(s',a')); a is drawn from the ε-greedy or the
    softmax policy of Q(s,·). If s' ends the episode, its value is 0.  One step is one episode of
    all R replicates; rewards are in the game's units.

    Source: Gallego (2021), eq. (4.1)."""

    in_loop: ClassVar[bool] = True  # level 1 against an opponent with one action

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Hierarchy:
        return Hierarchy([values.fresh(seat.own, 1)], None, seat, rng)

    def think(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        return mind.q[0].q(s)[..., 0]

    def learn(self, mind: Hierarchy, seen: Transition, episode: int) -> None:
        self.update_own(mind.q[0], seen)  # eq. (4.1)
