"""Counts of an opponent's actions by state, with memory independent of the number of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.games import Seat
from components.contracts.roles import StrictKeys
from components.contracts.streams import Rng
from components.games.agents.fictitious_play import Prior, marks, pseudo_counts
from components.games.environments.transition import Transition
from components.maths.spacing import row_numbers


@dataclass
class FilterCounts:
    """A counting Bloom filter for each action of each opponent."""

    cells: Tensor  # [R, H, C, ΣB_m]
    projection: Tensor | None  # of features, for states without numbers [F, bits]


def largest_primes(n: int, below: int) -> list[int]:
    """The n largest primes up to ``below``, in decreasing order."""
    primes: list[int] = []
    candidate = below
    while len(primes) < n and candidate > 1:
        if all(candidate % d for d in range(2, int(candidate**0.5) + 1)):
            primes.append(candidate)
        candidate -= 1
    return primes


class BloomCounts(StrictKeys):
    """p_A(b|s) ∝ p(s|b) p(b), p(s|b) = n_b(s)/n_b from a counting Bloom filter for each b, p(b) =
    n_b/Σ_b n_b.

    n_b cancels: p_A(b|s) ∝ n_b(s), the minimum over H cells with indices c(s) modulo the H largest
    primes up to ``cells``.  c is the number of a state, or else the signs of ``bits`` random
    projections of its features (SimHash).  A cell is initialised with the prior's pseudo-count and
    decays as in Algorithm 4.4.  Without collisions this is one Dirichlet per state; collisions only
    overestimate counts (λ = 1).

    Source: Gallego (2021), section 4.3.1; Tang et al. (2017)."""

    name: Literal["bloom"]
    cells: Annotated[int, Field(ge=11)]
    hashes: Annotated[int, Field(ge=1, le=4)]
    bits: Annotated[PositiveInt, Field(le=62)]

    def open(self, seat: Seat, prior: Prior, rng: Rng) -> FilterCounts:
        """Beliefs before the first move."""
        shape = (seat.replicates, self.hashes, self.cells)
        projection = None
        if seat.n_states is None:
            width = seat.environment.features(seat.environment.reset(1, rng.batches)).shape[1]
            projection = torch.randn(
                width, self.bits, generator=rng.noise, dtype=seat.dtype, device=seat.device
            )
        return FilterCounts(pseudo_counts(seat, shape, seat.others, prior), projection)

    def _places(self, mind: FilterCounts, seat: Seat, s: Tensor) -> Tensor:
        """Indices of the filter cells of a state [R, H]."""
        code = s
        if mind.projection is not None:
            signs = seat.environment.features(s) @ mind.projection > 0
            code = (signs.long() << torch.arange(self.bits, device=signs.device)).sum(1)
        return code.unsqueeze(1) % torch.tensor(
            largest_primes(self.hashes, self.cells), device=code.device
        )

    def _rows(self, mind: FilterCounts, seat: Seat, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        places = self._places(mind, seat, s)
        r = row_numbers(places)
        h = torch.arange(self.hashes, device=places.device)
        return r.unsqueeze(1), h, places

    def forecasts(self, mind: FilterCounts, seat: Seat, s: Tensor) -> list[Tensor]:
        """Forecast of each opponent's next action [R, B_m] in s [R, …]."""
        n = mind.cells[self._rows(mind, seat, s)].amin(1)  # [R, ΣB]
        return [part / part.sum(-1, keepdim=True) for part in n.split(seat.others, -1)]

    def take(self, mind: FilterCounts, seat: Seat, seen: Transition, forget: float) -> None:
        """Count a move, in place."""
        rows = self._rows(mind, seat, seen.s)
        cells = mind.cells[rows]
        after = forget * cells + marks(seen.each, seat.others, cells.dtype).unsqueeze(1)
        mind.cells[rows] = (
            after if seen.live is None else torch.where(seen.live[:, None, None], after, cells)
        )
