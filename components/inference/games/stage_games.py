"""What those have in common who expect of the others the best for them, or the worst: a game to solve in each state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.games.decision_maker import Mixer
from components.inference.games.solved import Solved
from components.maths.matrix_games import maximin
from components.problems.episodes.transition import Transition


@dataclass
class Staged:
    """Action values Q(s, a, b), and V(s) and π(s, ·) as they follow from them."""

    q: QFunction
    solved: Solved  # [R, S, 1 + A]
    seat: Seat = rebuilt()


class StageGames(Mixer[Staged]):
    """A decision maker who solves a zero-sum game in each state: she and her friends against her foes.

    V(s) = max_π min_o Σ_x π(x) Q(s, x, o), x her action and her friends', o that of her foes; she plays her share of π."""

    @abstractmethod
    def arrange_payoffs(self, q: Tensor, seat: Seat) -> Tensor:
        """Q(s, ·, ·) [N, A, B] with friends on her side [N, A·F, O], her own action running slowest."""

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Staged:
        A, B = seat.own, prod(seat.others)
        return Staged(values.fresh(A, B), Solved.none(seat, A * B, 1 + A), seat)

    def _solution(self, mind: Staged, s: Tensor) -> Tensor:
        """V(s) and π(s, ·) [R, 1 + A]."""
        seat, q = mind.seat, mind.q.q(s)

        def solve(games: Tensor) -> Tensor:
            value, x = maximin(self.arrange_payoffs(games.view(-1, *q.shape[1:]), seat))
            return torch.cat([value.unsqueeze(1), x.unflatten(1, (seat.own, -1)).sum(-1)], 1)

        return mind.solved.at(seat.rows(s), q.flatten(1), solve)

    def mixture(self, mind: Staged, s: Tensor) -> Tensor:
        return self._solution(mind, s)[:, 1:]

    def think(self, mind: Staged, s: Tensor, episode: int) -> Tensor:
        """max_f Σ_o y(o) Q(s, a, f, o) [R, A], friends at their best and foes at the mixture that holds her down."""
        game = self.arrange_payoffs(mind.q.q(s), mind.seat)
        y = maximin(-game.mT).strategy
        return (game @ y.unsqueeze(-1)).squeeze(-1).unflatten(1, (mind.seat.own, -1)).amax(-1)

    def learn(self, mind: Staged, seen: Transition, episode: int) -> None:
        """Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))."""
        target = seen.r_a + self.ahead(seen, self._solution(mind, seen.s_next)[:, 0])
        mind.q.learn(seen.s, seen.a, seen.b, target, seen.rate(self.alpha))
