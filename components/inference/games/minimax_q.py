"""Q-learning for the worst case: the adversary may do whatever he likes."""

from __future__ import annotations

from torch import Tensor

from components.contracts.games import Seat
from components.inference.games.stage_games import StageGames
from components.registry import register


@register("inference", "minimax_q")
class MinimaxQ(StageGames):
    """Minimax-Q: she learns what she can make sure of, and plays it, whatever her adversary wants.

        V(s) = max_π min_b Σ_a π(a) Q(s, a, b);   Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))

    Her policy is a π(s, ·) that reaches V(s), but for ε of random actions: exact, by ``maximin``.  In zero-sum games Q tends
    to the values of Shapley (1953); his rewards do not matter.  Several opponents are taken for one who chooses for all.  Q
    [R, S, A, B]; each state's game is solved when its table has changed.

    Source: Littman (1994), Figure 1."""

    def arrange_payoffs(self, q: Tensor, seat: Seat) -> Tensor:
        return q
