"""Friend-or-foe Q-learning."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import NonEmptyList
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.equilibria.stage_games import StageGames, StageGameState
from components.registry import register

Side = Literal["friend", "foe"]


@register("inference", "friend_or_foe_q")
class FriendOrFoeQ(StageGames[StageGameState]):
    """Friend-or-foe Q-learning: each opponent is declared as a friend or a foe.

        V(s) = max_π min_o Σ_{a,f} π(a, f) Q(s, a, f, o)
        Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))

    with f the actions of cooperative friends, o those of adversarial foes, and b both.  The agent
    plays its share Σ_f π(a, f), except for a fraction ε of random actions.  ``opponents`` is friend
    or foe for all of them, or a list with one entry per opponent.  With only friends it is
    Q-learning over joint actions, which reaches their joint optimum if all receive the agent's
    reward; with only foes it is ``minimax_q``.  Joint actions that were never played keep the
    initial value of the model: with a high ``initial``, friends explore them.  Q [R, S, A, ∏ B_m].

    Raises ConfigMismatchError if the length of the list differs from the number of opponents.

    Source: Littman (2001), friend-or-foe Q-learning.
    """

    opponents: Side | NonEmptyList[Side]

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> StageGameState:
        if isinstance(self.opponents, list) and len(self.opponents) != len(seat.others):
            raise ConfigMismatchError(
                f"inference.opponents: {len(self.opponents)} declared, but the game has {len(seat.others)}"
            )
        return StageGameState(*self.first_tables(values, seat))

    def arrange_payoffs(self, q: Tensor, seat: Seat) -> Tensor:
        sides = (
            self.opponents
            if isinstance(self.opponents, list)
            else [self.opponents] * len(seat.others)
        )
        friends = [2 + m for m, side in enumerate(sides) if side == "friend"]
        foes = [2 + m for m, side in enumerate(sides) if side == "foe"]
        each = q.view(-1, seat.own, *seat.others).permute(0, 1, *friends, *foes)
        return (
            each.flatten(1, 1 + len(friends)).flatten(2) if foes else each.flatten(1).unsqueeze(2)
        )
