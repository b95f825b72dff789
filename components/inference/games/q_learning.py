"""Q-learning that knows of no opponent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.games.exploration import Exploration, explored
from components.maths.policies import PolicyName, probabilities
from components.posteriors.play import Play
from components.problems.game import Episode, Game, Standing, Transition
from components.registry import register


@dataclass
class Values:
    """Action values Q(s, a), and where the game stands."""

    q: QFunction  # of one action of the others: whatever they do, the same value
    standing: Standing


@register("inference", "q_learning")
class QLearning(Inference[QFunction, Game, Episode, Values]):
    """Independent Q-learning: the adversary is taken for a part of the environment.

    Q(s,a) := (1 − α) Q(s,a) + α (r + γ max_a' Q(s',a')); a is drawn from the ε-greedy or the softmax policy of Q(s,·).
    Where s' ends the episode there is nothing to come.  One step is one episode of all R replicates; rewards are in the
    game's units.

    Source: Gallego (2021), eq. (4.1)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    gives: ClassVar[frozenset[str]] = frozenset({"played"})
    attacks: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    policy: PolicyName
    epsilon: Exploration
    temperature: PositiveFloat

    def init(self, model: QFunction, problem: Game, rng: Rng) -> Values:
        return Values(model.fresh(problem.n_actions, 1), problem.opening(rng))

    def step(self, state: Values, batch: Episode, rng: Rng) -> tuple[Values, Info]:
        q, epsilon = state.q, explored(self.epsilon, batch.index)

        def choose(s: Tensor) -> Tensor:
            return probabilities(q.q(s)[..., 0], self.policy, epsilon, self.temperature)

        def learn(seen: Transition) -> None:
            target = seen.r_a + seen.ahead(q.q(seen.s_next)[..., 0].amax(-1), self.gamma)
            q.learn(seen.s, seen.a, torch.zeros_like(seen.b), target, seen.rate(self.alpha))  # eq. (4.1)

        return state, {"reward": batch.play(state.standing, rng, choose, learn)}

    def posterior(self, state: Values) -> Play:
        """Rewards so far and Q(s, ·) [R, A]."""

        def think(s: Tensor) -> Tensor:
            return state.q.q(s)[..., 0].clone()  # it may be the table itself

        return Play(state.standing.earned, think(state.standing.s), None, think)
