"""One Dirichlet for each state: the belief of Algorithm 4.4."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.inference.games.fictitious_play import count, forecasts, marks, prior_counts
from components.problems.episodes.transition import Transition


class Counting(Protocol):
    """How what opponents do is counted."""

    # the counts before the first move
    def open(self, seat: Seat, prior: float, rng: Rng) -> Any: ...

    # of each next action [R, B_m]
    def forecasts(self, counts: Any, seat: Seat, s: Tensor) -> list[Tensor]: ...

    # a move in, in place
    def take(self, counts: Any, seat: Seat, seen: Transition, forget: float) -> None: ...


class StateCounts:
    """Counts [R, S, ΣB_m]; states without numbers share theirs."""

    def open(self, seat: Seat, prior: float, rng: Rng) -> Tensor:
        return prior_counts(seat, sum(seat.others), prior)

    def forecasts(self, counts: Tensor, seat: Seat, s: Tensor) -> list[Tensor]:
        return forecasts(counts, seat.rows(s), seat.others)

    def take(self, counts: Tensor, seat: Seat, seen: Transition, forget: float) -> None:
        count(
            counts,
            seat.rows(seen.s),
            marks(seen.each, seat.others, counts.dtype),
            forget,
            seen.live,
        )
