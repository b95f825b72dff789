"""The adaptive adversary of the friend-or-foe game."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import BetweenZeroAndOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import standard_uniform
from components.registry import register


@register("attacker", "exponential_smoother")
class ExponentialSmoother(Opponent[Tensor]):
    """Opponent that smooths the agent's past choices and rewards the least expected target.

    p := βp + (1 − β)a with a one-hot, p = (1/K, …, 1/K) at the start; b = argmin_i p_i, the
    target that gets the positive reward.  Ties are broken at random, or the first is taken
    (the released code; two smoothers then both do the same, as Gallego 4.4.2 has it).  The
    opponent sees only which of the K targets the agent takes; a move that takes none
    carries no information.  State: p [R, K].

    Raises:
        ConfigMismatchError: the opponent's actions are not the targets.

    Source: Gallego (2021), section 4.4.1.
    """

    knowledge = "black box"

    beta: BetweenZeroAndOne
    ties: Literal["random", "first"]

    def reset(self, seat: Seat, rng: Rng) -> Tensor:
        """p [R, K] before the first episode."""
        if seat.own != seat.targets:
            raise ConfigMismatchError(
                f"attacker={self.name}: hides the reward in one of the targets she can take, here he has {seat.own} actions "
                f"for {seat.targets} targets"
            )
        return seat.full((seat.replicates, seat.targets), 1 / seat.targets)

    def act(self, state: Tensor, turn: Turn, rng: Rng) -> Tensor:
        """Target of the positive reward, b [R] long."""
        least = state == state.amin(-1, keepdim=True)
        # Equal estimates get different uniform numbers; all others are excluded from the draw.
        u = standard_uniform(state.shape, rng.attack, state)
        return torch.where(least, u if self.ties == "random" else 0.0, 2.0).argmin(-1)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        """p after the agent's choice; the opponent's own action and reward are ignored."""
        smoothed = self.beta * state + (1 - self.beta) * move.shown
        return (
            smoothed if move.seen is None else torch.where(move.seen.unsqueeze(1), smoothed, state)
        )
