"""Coin game: two players collect two coins on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.games import Outcome, Shown
from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.games.environments.friend_or_foe_grid import MOVES
from components.games.environments.game import Game
from components.games.environments.game_dataset import GameDataset
from components.registry import register

Sharing = Literal["split", "hers", "his"]


@dataclass(frozen=True)
class CoinEnvironment:
    """``Environment`` of the coin game.

    A state is (the decision maker's cell, the opponent's cell, cell of coin 1, of coin 2),
    N² where a coin has been taken [R, 4].
    """

    size: int  # N
    moves: int
    random_start: bool
    shared: Sharing
    device: torch.device
    dtype: torch.dtype
    n_actions: int = 4
    n_threats: tuple[int, ...] = (4,)
    continuing: bool = False

    @property
    def horizon(self) -> int:
        return self.moves

    @cached_property
    def pays(self) -> Tensor:
        """Value of a coin to the decision maker and to the opponent if none, the opponent, the
        decision maker or both step on it [2, 4]."""
        r_a, r_b = {"split": (0.5, 0.5), "hers": (1.0, 0.0), "his": (0.0, 1.0)}[self.shared]
        values = [[0.0, 0.0, 1.0, r_a], [0.0, 1.0, 0.0, r_b]]
        return torch.tensor(values, device=self.device, dtype=self.dtype)

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor:
        """Initial states: players in the left corners and coins in the right ones, or all four in
        random distinct cells."""
        n = self.size
        if not self.random_start:
            corners = torch.tensor([0, n * (n - 1), n - 1, n * n - 1], device=self.device)
            return corners.expand(replicates, -1).clone()
        u = torch.rand(
            replicates, n * n, generator=generator, device=self.device, dtype=torch.float64
        )
        return u.argsort(1)[:, :4]

    @cached_property
    def next_cell(self) -> Tensor:
        """Cell of a player after an action [N², 4]; moves across the border have no effect."""
        line = torch.arange(self.size)
        places = torch.cartesian_prod(line, line)[:, None] + torch.tensor(MOVES)
        row, column = places.clamp(0, self.size - 1).unbind(-1)
        return (row * self.size + column).to(self.device)

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        """Move both players: reward 1 per coin to the player that takes it; for a shared coin ½
        each, or 1 to one player."""
        a_cell = self.next_cell[s[:, 0], a]
        b_cell = self.next_cell[s[:, 1], b[:, 0]]
        coins = s[:, 2:]
        # [R, 2]
        takers = 2 * (coins == a_cell.unsqueeze(1)) + (coins == b_cell.unsqueeze(1)).long()
        r_a, r_b = self.pays[:, takers].sum(-1)
        coins_left = torch.where(takers > 0, self.size**2, coins)
        s_next = torch.cat([a_cell[:, None], b_cell[:, None], coins_left], 1)
        return Outcome(r_a, r_b.unsqueeze(1), s_next, None)

    def observe(self, s: Tensor, a: Tensor) -> Shown:
        return Shown(one_hot(a, self.n_actions).to(self.dtype), None)

    def features(self, s: Tensor) -> Tensor:
        """One-hot positions of players and coins [R, 4 N²]; zeros for a coin that was taken."""
        n = self.size**2
        return one_hot(s, n + 1)[..., :n].flatten(1).to(self.dtype)


@register("dataset", "coin_game")
class CoinGame(GameDataset):
    """The coin game: two players chase two coins on a grid of N × N cells.

    An episode has ``moves`` moves.  Both players move simultaneously, up, right, down or left;
    moves across the border have no effect.  A coin is worth 1 to the player that steps on it, ½
    each if both do at the same time, or 1 to one of them (key ``shared``; the published code pays
    one player).  States have no numbers (there are (N²)⁴ of them): action values are linear in, or
    a network of, features [R, 4 N²].

    Source: Gallego (2021), section 4.4.3, Figure 4.9 (after Foerster et al. 2018).
    """

    size: AtLeastTwo
    moves: PositiveInt
    start: Literal["fixed", "random"]
    shared: Sharing

    def load(self, rng: Rng, setting: Setting) -> Game:
        random_start = self.start == "random"
        return self.build_game(
            CoinEnvironment(
                self.size, self.moves, random_start, self.shared, setting.device, setting.dtype
            ),
            setting,
        )
