"""Panel of opponents with a share of the replicates each."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import field_validator
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import NonEmptyList
from components.contracts.streams import Rng
from components.maths.spacing import row_numbers
from components.registry import register

Memories = list[Any]  # of the playing members, in order


@register("attacker", "panel")
class Panel(Opponent[Memories]):
    """Panel of M opponents: the opponent of replicate r in all episodes is member r mod M.

    A run is then one row of a round robin: its scores by replicate are against the members in turn,
    and their mean is the mean over members if M divides R.  In a game of several seats, each seat
    has its own members, of the same kind in each replicate.  Members are computed in all replicates
    and used in their own; with fewer replicates than members the last members do not play.

    Raises:
        ValueError: a member leads other opponents (together) or has no seat (regulator).

    Source: Axelrod (1984), chapter 2 (round robin).
    """

    knowledge = "black box"

    members: NonEmptyList[Opponent]

    @field_validator("members")
    @classmethod
    def _check_members_sit(cls, members: list[Opponent]) -> list[Opponent]:
        for member in members:
            if member.third_party or any(p is not member for p in member.assign_seats(1)):
                raise ValueError(
                    f"{member.name} has no seat of its own; use learner, fixed_policy, …; for "
                    f"different opponents in several seats, use attacker=together with a panel for each seat"
                )
        return members

    def reset(self, seat: Seat, rng: Rng) -> Memories:
        return [member.reset(seat, rng) for member in self.members[: seat.replicates]]

    def act(self, state: Memories, turn: Turn, rng: Rng) -> Tensor:
        """Return b [R] long, the action of each replicate's member."""
        actions = torch.stack(
            [
                member.act(memory, turn, rng)
                for member, memory in zip(self.members, state, strict=False)
            ]
        )
        return actions.gather(0, self._assign(turn.s).unsqueeze(0)).squeeze(0)

    def observe(self, state: Memories, move: Move) -> Memories:
        """Update the memories with a move, for each member in its own replicates."""
        assigned = self._assign(move.s)
        after = []
        for m, (member, memory) in enumerate(zip(self.members, state, strict=False)):
            is_assigned = assigned == m
            live = is_assigned if move.live is None else is_assigned & move.live
            observed = is_assigned if move.seen is None else is_assigned & move.seen
            after.append(member.observe(memory, move._replace(live=live, seen=observed)))
        return after

    def _assign(self, s: Tensor) -> Tensor:
        """Return the number of the member of each replicate [R] long."""
        return row_numbers(s) % len(self.members)
