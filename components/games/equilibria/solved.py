"""Cache of solved stage games: unchanged games are not solved again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import torch
from torch import Tensor

from components.contracts.games import Seat


@dataclass
class StageGameSolutions:
    """Last game solved in each state, and its solution; states without numbers share an entry."""

    asked: Tensor  # [R, S, n], initially NaN
    answers: Tensor  # [R, S, k]

    @classmethod
    def none(cls, seat: Seat, n: int, k: int) -> StageGameSolutions:
        """Return an empty cache."""
        lead = (seat.replicates, seat.n_states or 1)
        return cls(seat.full((*lead, n), nan), seat.full((*lead, k), 0.0))

    def at(self, rows: Tensor, games: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        """Return solutions [R, k] of ``games`` [R, n] in the states with numbers ``rows`` [R].

        ``solve`` [N, n] -> [N, k] receives only changed games.
        """
        R, S, n = self.asked.shape
        stored_games = self.asked.view(R * S, n)
        answers = self.answers.view(R * S, -1)
        indices = rows + S * torch.arange(R, device=rows.device)
        changed = (stored_games.index_select(0, indices) != games).any(1)
        if bool(changed.any()):
            places = indices[changed]
            news = games[changed]
            stored_games[places] = news
            answers[places] = solve(news)
        return answers.index_select(0, indices)
