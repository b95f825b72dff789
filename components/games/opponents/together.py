"""Several opponents of different kinds, with simultaneous moves."""

from __future__ import annotations

from typing import Any

from components.contracts.opponents import Opponent
from components.contracts.roles import NonEmptyList
from components.registry import register


@register("attacker", "together")
class Together(Opponent[None]):
    """Opponents of different kinds, one per seat of the game, in the order of ``members``; a third
    party must be last.

    Their choices are independent: p(b¹ … b^M|s) = ∏ p(b^m|s).

    Source: Gallego (2021), section 4.3.5."""

    knowledge = "black box"

    members: NonEmptyList[Opponent]

    def assign_seats(self, seats: int) -> list[Opponent[Any]]:
        return [player for member in self.members for player in member.assign_seats(1)]
