"""Stage games that have been solved: one that has not changed since is not solved again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import torch
from torch import Tensor

from components.contracts.games import Seat


@dataclass
class StageGameSolutions:
    """Last game requested in each state, and its solution; states without numbers share one."""

    asked: Tensor  # [R, S, n], NaN before
    answers: Tensor  # [R, S, k]

    @classmethod
    def none(cls, seat: Seat, n: int, k: int) -> StageGameSolutions:
        """Before anything is asked."""
        lead = (seat.replicates, seat.n_states or 1)
        return cls(seat.full((*lead, n), nan), seat.full((*lead, k), 0.0))

    def at(self, rows: Tensor, games: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        """Solutions [R, k] of ``games`` [R, n], one for each state number in ``rows`` [R].

        ``solve`` [N, n] -> [N, k] receives only the games that have changed.
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
