"""Tit for tat with forgiveness and errors."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import ZeroToOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register


@register("attacker", "tit_for_tat")
class TitForTat(Opponent[Tensor]):
    """Opponent that cooperates first (action 0), and then repeats the agent's last action.

    b_t = a_{t−1};  with probability ``forgives`` the opponent cooperates in any case, and
    with probability ``errs`` it then does the opposite of its intended action.  State: the
    intended action [R].

    Raises:
        ConfigMismatchError: there are not two actions on each side.

    Source: Axelrod (1984); Gallego (2021), section 4.5.4 (a forgiving operator).
    """

    knowledge = "black box"

    forgives: ZeroToOne
    errs: ZeroToOne

    def reset(self, seat: Seat, rng: Rng) -> Tensor:
        if (seat.own, seat.hers) != (2, 2):
            raise ConfigMismatchError(
                f"attacker={self.name}: requires two actions on each side, but the opponent has {seat.own} and the "
                f"agent {seat.hers}"
            )
        return torch.zeros(seat.replicates, dtype=torch.long, device=seat.device)

    def act(self, state: Tensor, turn: Turn, rng: Rng) -> Tensor:
        """Return b [R]; always uses two uniform numbers per replicate."""
        u = torch.rand(
            2, len(state), generator=rng.attack, device=state.device, dtype=torch.float64
        )
        meant = torch.where(u[0] < self.forgives, 0, state)
        return torch.where(u[1] < self.errs, 1 - meant, meant)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        return move.a if move.live is None else torch.where(move.live, move.a, state)
