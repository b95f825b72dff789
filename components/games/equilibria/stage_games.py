"""Base class of players with a zero-sum stage game in each state."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import not_checkpointed
from components.games.agents.decision_maker import MixedStrategyDecisionMaker
from components.games.environments.transition import Transition
from components.games.equilibria.matrix_games import maximin
from components.games.equilibria.solved import StageGameSolutions


@dataclass
class StageGameState:
    """Action values Q(s, a, b), and the resulting V(s) and π(s, ·)."""

    q: QFunction
    solved: StageGameSolutions  # [R, S, 1 + A]
    seat: Seat = not_checkpointed()


G = TypeVar("G", bound=StageGameState)  # state of the agent


class StageGames(MixedStrategyDecisionMaker[G], Generic[G]):
    """Decision maker that solves a zero-sum game of friends against foes in each state.

    The agent and its friends are one side.  V(s) = max_π min_o Σ_x π(x) Q(s, x, o), with x the
    action of the agent and its friends and o the action of its foes; the agent plays its marginal
    of π.
    """

    def arrange_payoffs(self, q: Tensor, seat: Seat) -> Tensor:
        """Rearrange Q(s, ·, ·) [N, A, B] to payoffs of the agent and its friends against foes [N,
        A·F, O], by default without friends.

        The agent's own action varies slowest.
        """
        return q

    def stage_game(self, mind: G, s: Tensor) -> Tensor:
        """Return the zero-sum game of s [R, A·F, O]."""
        return self.arrange_payoffs(mind.q.q(s), mind.seat)

    @staticmethod
    def first_tables(values: QFunction, seat: Seat) -> tuple[QFunction, StageGameSolutions, Seat]:
        """Return initial values of the fields of the state."""
        A = seat.own
        B = prod(seat.others)
        return values.fresh(A, B), StageGameSolutions.none(seat, A * B, 1 + A), seat

    def _solution(self, mind: G, s: Tensor) -> Tensor:
        """Return V(s) and π(s, ·) [R, 1 + A]."""
        seat = mind.seat
        game = self.stage_game(mind, s)

        def solve(games: Tensor) -> Tensor:
            value, x = maximin(games.view(-1, *game.shape[1:]))
            return torch.cat([value.unsqueeze(1), x.unflatten(1, (seat.own, -1)).sum(-1)], 1)

        return mind.solved.at(seat.rows(s), game.flatten(1), solve)

    def mixture(self, mind: G, s: Tensor) -> Tensor:
        return self._solution(mind, s)[:, 1:]

    def think(self, mind: G, s: Tensor, episode: int) -> Tensor:
        """Return values max_f Σ_o y(o) Q(s, a, f, o) [R, A].

        Friends maximise the agent's value, and foes minimise it.
        """
        game = self.stage_game(mind, s)
        y = maximin(-game.mT).strategy
        return (game @ y.unsqueeze(-1)).squeeze(-1).unflatten(1, (mind.seat.own, -1)).amax(-1)

    def learn(self, mind: G, seen: Transition, episode: int) -> None:
        """Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))."""
        self.update(mind.q, seen, seen.b, self._solution(mind, seen.s_next)[:, 0])
