"""Minimax Q-learning, for the worst case over the adversary's actions."""

from __future__ import annotations

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.games.equilibria.stage_games import StageGames, StageGameState
from components.registry import register


@register("inference", "minimax_q")
class MinimaxQ(StageGames[StageGameState]):
    """Minimax-Q: the agent learns and plays its guaranteed value against any adversary.

        V(s) = max_π min_b Σ_a π(a) Q(s, a, b)
        Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))

    The agent's policy is a π(s, ·) that attains V(s), computed exactly by ``maximin``, except for a
    fraction ε of random actions.  In zero-sum games Q tends to the values of Shapley (1953); the
    adversary's rewards are not used.  Several opponents are treated as one with joint actions.  Q
    [R, S, A, B]; the game of a state is solved again only after its table changes.

    Source: Littman (1994), Figure 1.
    """

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> StageGameState:
        return StageGameState(*self.first_tables(values, seat))
