"""Adaptive adversary of the friend-or-foe game."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import BetweenZeroAndOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.policies import Ties, draw_action, probabilities
from components.registry import register


@register("attacker", "exponential_smoother")
class ExponentialSmoother(Opponent[Tensor]):
    """Opponent that smooths the agent's past choices and puts the reward at the least expected
    target.

    p := βp + (1 − β)a with a one-hot, p = (1/K, …, 1/K) at the start; b = argmin_i p_i, the target
    with the positive reward.  Ties are broken at random, or go to the first target (as in the
    released code; then two smoothers act identically, as in Gallego 4.4.2).  The opponent observes
    only the agent's choice among the K targets; other moves carry no information.  State: p [R, K].

    Raises:
        ConfigMismatchError: the opponent's actions are not the targets.

    Source: Gallego (2021), section 4.4.1.
    """

    knowledge = "black box"

    beta: BetweenZeroAndOne
    ties: Literal["random", "first"]

    def reset(self, seat: Seat, rng: Rng) -> Tensor:
        """Return the initial p [R, K]."""
        if seat.own != seat.targets:
            raise ConfigMismatchError(
                f"attacker={self.name}: requires one action per target of the agent, but has "
                f"{seat.own} actions for {seat.targets} targets"
            )
        return seat.full((seat.replicates, seat.targets), 1 / seat.targets)

    def act(self, state: Tensor, turn: Turn, rng: Rng) -> Tensor:
        """Choose the target of the positive reward, b [R] long."""
        ties: Ties = "first" if self.ties == "first" else "shared"
        return draw_action(probabilities(-state, "epsilon_greedy", 0.0, 1.0, ties), rng.attack)

    def observe(self, state: Tensor, move: Move) -> Tensor:
        """Update p with the agent's choice; the opponent's own action and reward are ignored."""
        smoothed = self.beta * state + (1 - self.beta) * move.shown
        return (
            smoothed if move.seen is None else torch.where(move.seen.unsqueeze(1), smoothed, state)
        )
