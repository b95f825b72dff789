"""Dirichlet beliefs about opponents' next actions in each state, from counts.

Counts [R, S, ΣB_m] concatenate the counts of M opponents; the agent treats the opponents as
independent, and their forecasts multiply.

Source: Gallego (2021), sections 4.3.1 and 4.3.5, Algorithm 4.4.
"""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.games import Seat
from components.contracts.roles import NonEmptyList
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.environments.transition import Transition
from components.maths.spacing import row_numbers

# α⁰ for all actions, or for each: a Dirichlet, or a Beta for two actions
Prior = PositiveFloat | NonEmptyList[PositiveFloat]


def pseudo_counts(
    seat: Seat, shape: tuple[int, ...], sizes: tuple[int, ...], prior: Prior
) -> Tensor:
    """Pseudo-counts α⁰ [*shape, ΣB_m] of a Dirichlet over the B_m actions of each player.

    Raises:
        ConfigMismatchError: the number of pseudo-counts differs from the number of actions.
    """
    if isinstance(prior, list):
        if wrong := [n for n in sizes if n != len(prior)]:
            raise ConfigMismatchError(
                f"inference.prior: has {len(prior)} pseudo-counts, but the counted player has "
                f"{wrong[0]} actions; give a single number, or one per action"
            )
        each = torch.tensor(prior * len(sizes), device=seat.device, dtype=seat.dtype)
        return each.expand(*shape, sum(sizes)).clone()
    return seat.full((*shape, sum(sizes)), prior)


def mean_forecast(counts: Tensor, s: Tensor) -> Tensor:
    """E[p_A(·|s)] = α / Σα: counts [R, S, n], s [R] -> [R, n]."""
    alpha = counts[:, 0] if counts.shape[1] == 1 else counts[row_numbers(s), s]
    return alpha / alpha.sum(-1, keepdim=True)


def count(
    counts: Tensor, s: Tensor, seen: Tensor, forget: float, live: Tensor | None = None
) -> None:
    """Algorithm 4.4 in place: α(s) := λα(s), then α_b(s) := α_b(s) + 1.

    Other states, and replicates that are not ``live`` [R], are unchanged.  ``seen`` [R, n] is
    one-hot for the action of each opponent.
    """
    replicates, states, n = counts.shape
    flat = counts.view(-1, n)
    if states == 1 and live is None:  # the whole table
        flat.copy_(torch.add(seen, flat, alpha=forget))
        return
    rows = torch.arange(replicates, device=s.device) * states + s
    old_counts = flat.index_select(0, rows)
    after = torch.add(seen, old_counts, alpha=forget)
    flat.index_copy_(
        0, rows, after if live is None else torch.where(live.unsqueeze(1), after, old_counts)
    )


def marks(each: Tensor, sizes: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """One-hot actions of the opponents, [R, M] -> [R, ΣB_m], with a one per opponent."""
    return torch.cat([one_hot(each[:, m], n) for m, n in enumerate(sizes)], 1).to(dtype)


def together(parts: list[Tensor]) -> Tensor:
    """p(b¹ … b^M) = ∏ p(b^m), in the numbering of joint actions: [R, B_m] each -> [R, ∏B_m]."""
    joint = parts[0]
    for part in parts[1:]:
        joint = (joint.unsqueeze(2) * part.unsqueeze(1)).flatten(1)
    return joint


def expected_values(q: Tensor, forecast: Tensor) -> Tensor:
    """ψ(s, a) = Σ_b Q(s, a, b) p(b|s), eq. (4.3): q [R, A, B], forecast [R, B] -> [R, A]."""
    return (q * forecast[:, None, :]).sum(-1)


class StateCounts:
    """Counts [R, S, ΣB_m], one Dirichlet per state; states without numbers share one count.

    Source: Gallego (2021), section 4.3.1."""

    def open(self, seat: Seat, prior: Prior, rng: Rng) -> Tensor:
        """Pseudo-counts before the first move."""
        return pseudo_counts(seat, (seat.replicates, seat.n_states or 1), seat.others, prior)

    def forecasts(self, counts: Tensor, seat: Seat, s: Tensor) -> list[Tensor]:
        """Forecast of each opponent's next action [R, B_m]."""
        rows = seat.rows(s)
        return [mean_forecast(part, rows) for part in counts.split(seat.others, -1)]

    def take(self, counts: Tensor, seat: Seat, seen: Transition, forget: float) -> None:
        """Count a move, in place."""
        did = marks(seen.each, seat.others, counts.dtype)
        count(counts, seat.rows(seen.s), did, forget, seen.live)
