"""Markov chain mixture over previous actions and states: beliefs about an opponent with memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat
from torch import Tensor

from components.contracts.games import Seat
from components.contracts.roles import StrictKeys
from components.contracts.streams import Rng
from components.games.agents.fictitious_play import (
    Prior,
    count,
    marks,
    mean_forecast,
    pseudo_counts,
)
from components.games.environments.transition import Transition


@dataclass
class ChainCounts:
    """Pseudo-counts of each opponent's next action, one set per opponent.

    They are conditioned on the agent's last action, the opponent's last action, and the state.
    """

    after_hers: list[Tensor]  # [R, A, B_m]
    after_his: list[Tensor]  # [R, B_m, B_m]
    in_state: list[Tensor]  # [R, S, B_m]
    weights: Tensor  # pseudo-counts of the three chains [R, M, 3]
    a: Tensor  # the last actions [R]; −1: none yet
    b: Tensor  # [R, M]


class MarkovChains(StrictKeys):
    """p_A(b_t | a_{t−1}, b_{t−1}, s_t) = w_1 p_A(b_t | a_{t−1}) + w_2 p_A(b_t | b_{t−1}) + w_3
    p_A(b_t | s_t).

    Each p_A is a Dirichlet mean as in Algorithm 4.4. w is proportional to ``weights``; with
    ``learn`` they are pseudo-counts, and each move adds the posterior probability of each chain,
    w_i p_i(b_t)/Σ_j w_j p_j(b_t). Before the first move only the third chain is used.

    Source: Gallego (2021), section 4.3.1; Raftery (1985)."""

    name: Literal["markov_chains"]
    weights: Annotated[list[NonNegativeFloat], Field(min_length=3, max_length=3)]
    learn: bool

    def open(self, seat: Seat, prior: Prior, rng: Rng) -> ChainCounts:
        """Beliefs before the first move."""
        r = seat.replicates
        states = seat.n_states or 1

        def unseen_counts(rows: int, n: int) -> Tensor:
            return pseudo_counts(seat, (r, rows), (n,), prior)

        unseen = torch.full((r, len(seat.others)), -1, device=seat.device)
        weights = torch.tensor(self.weights, device=seat.device, dtype=seat.dtype)
        return ChainCounts(
            [unseen_counts(seat.own, n) for n in seat.others],
            [unseen_counts(n, n) for n in seat.others],
            [unseen_counts(states, n) for n in seat.others],
            weights.expand(r, len(seat.others), 3).clone(),
            unseen[:, 0].clone(),
            unseen,
        )

    @staticmethod
    def _each(mind: ChainCounts, s: Tensor, m: int) -> Tensor:
        """The three forecasts of opponent m [R, 3, B_m] in the states with numbers s [R]."""
        has_previous = mind.a >= 0
        a = mind.a.clamp_min(0)
        b = mind.b[:, m].clamp_min(0)
        state = mean_forecast(mind.in_state[m], s)
        chains = [mean_forecast(mind.after_hers[m], a), mean_forecast(mind.after_his[m], b)]
        return torch.stack(
            [*(torch.where(has_previous[:, None], p, state) for p in chains), state], 1
        )

    def forecasts(self, mind: ChainCounts, seat: Seat, s: Tensor) -> list[Tensor]:
        """Forecast of each opponent's next action [R, B_m]."""
        s = seat.rows(s)
        w = mind.weights / mind.weights.sum(-1, keepdim=True)
        return [
            (w[:, m, :, None] * self._each(mind, s, m)).sum(1) for m in range(len(mind.in_state))
        ]

    def take(self, mind: ChainCounts, seat: Seat, seen: Transition, forget: float) -> None:
        """Update the counts with a move, in place."""
        s = seat.rows(seen.s)
        live = torch.ones_like(seen.a, dtype=torch.bool) if seen.live is None else seen.live
        after = live & (mind.a >= 0)
        for m, counts in enumerate(mind.in_state):
            b = seen.each[:, m]
            did = marks(b.unsqueeze(1), (counts.shape[2],), counts.dtype)
            if self.learn:
                likelihood = mind.weights[:, m] * (self._each(mind, s, m) * did.unsqueeze(1)).sum(
                    -1
                )
                mind.weights[:, m] += (
                    after.unsqueeze(1) * likelihood / likelihood.sum(-1, keepdim=True)
                )
            count(counts, s, did, forget, live)
            count(mind.after_hers[m], mind.a.clamp_min(0), did, forget, after)
            count(mind.after_his[m], mind.b[:, m].clamp_min(0), did, forget, after)
        mind.a = torch.where(live, seen.a, mind.a)
        mind.b = torch.where(live.unsqueeze(1), seen.each, mind.b)
