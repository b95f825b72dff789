"""Tit for tat with forgiveness and errors."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import ZeroToOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.policies import draw_action
from components.registry import register


@register("attacker", "tit_for_tat")
class TitForTat(Opponent[Tensor]):
    """Opponent that cooperates first (action 0), and then repeats the agent's last action.

    b_t = a_{t−1};  with probability ``forgives`` the opponent cooperates in any case, and
    with probability ``errs`` it then does the opposite of its intended action.  State:
    probabilities of its next action [R, 2].

    Raises:
        ConfigMismatchError: there are not two actions on each side.

    Source: Axelrod (1984); Gallego (2021), section 4.5.4 (a forgiving operator).
    """

    knowledge = "black box"

    forgives: ZeroToOne
    errs: ZeroToOne

    def reset(self, seat: Seat, rng: Rng) -> Tensor:
        if (seat.own, seat.agent_actions) != (2, 2):
            raise ConfigMismatchError(
                f"attacker={self.name}: requires two actions on each side, but the opponent has {seat.own} and the "
                f"agent {seat.agent_actions}"
            )
        return self.replies().to(seat.device, seat.dtype)[0].repeat(seat.replicates, 1)

    def replies(self) -> Tensor:
        """Probabilities of both actions after each action of the agent [2, 2]."""
        kept = 1 - self.errs
        forgiven = self.forgives * kept + (1 - self.forgives) * self.errs
        return torch.tensor([[kept, self.errs], [forgiven, 1 - forgiven]], dtype=torch.float64)

    def act(self, state: Tensor, turn: Turn, rng: Rng) -> Tensor:
        return draw_action(state, rng.attack)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        after = self.replies().to(state)[move.a]
        return after if move.live is None else torch.where(move.live.unsqueeze(1), after, state)
