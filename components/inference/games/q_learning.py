"""Q-learning that knows of no opponent."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, PositiveFloat

from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info, Probability
from components.contracts.streams import Rng
from components.maths.policies import PolicyName, draw_action, probabilities
from components.models.games.q_table import Table
from components.posteriors.play import Play
from components.problems.game import Episode, Game
from components.registry import register


@register("inference", "q_learning")
class QLearning(Inference):
    """Independent Q-learning: the adversary is taken for a part of the environment.

    Q(s,a) := (1 − α) Q(s,a) + α (r + γ max_a' Q(s',a')); a is drawn from the ε-greedy or the softmax policy of Q(s,·).
    One step is one episode of all R replicates; rewards are in the game's units.

    Source: Gallego (2021), eq. (4.1)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    attacks: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    policy: PolicyName
    epsilon: Probability
    temperature: PositiveFloat

    def init(self, model: Table, problem: Game, rng: Rng) -> dict[str, Any]:
        # Q(s, a) is a table with one column: whatever he does, the same cell.
        return {"q": model.fresh(problem.n_actions, 1), **problem.opening()}

    def step(self, state: dict[str, Any], batch: Episode, rng: Rng) -> tuple[dict[str, Any], Info]:
        q: Table = state["q"]
        p = probabilities(q.q(state["s"])[..., 0], self.policy, self.epsilon, self.temperature)
        seen = batch.game.play(state, draw_action(p, rng.noise), rng)
        target = seen.r_a + self.gamma * q.q(seen.s_next)[..., 0].amax(-1)
        q.learn(seen.s, seen.a, torch.zeros_like(seen.b), target, self.alpha)  # eq. (4.1)
        return state, {"reward": seen.r_a}

    def posterior(self, state: dict[str, Any]) -> Play:
        """Rewards so far and Q(s, ·) [R, A]."""
        return Play(state["rewards"][:, : state["episodes"]], state["q"].q(state["s"])[..., 0], forecast=None)
