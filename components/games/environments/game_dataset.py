"""Datasets of games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.games import Environment
from components.contracts.roles import AboveZeroToOne, Dataset, Setting
from components.games.environments.game import Drawing, Game
from components.games.figures import rewards


class GameDataset(Dataset[Game]):
    """A game with a number of episodes; ``load`` of a subclass calls ``build_game``."""

    kind = "game"
    length_key = "episodes"
    vectorised = True

    episodes: PositiveInt
    tail: AboveZeroToOne
    window: PositiveInt

    def build_game(
        self,
        environment: Environment,
        setting: Setting,
        counts: Literal["total", "last_move"] = "total",
        learns_from: Literal["every_move", "ends"] = "every_move",
        figures: Sequence[Drawing] = (),
    ) -> Game:
        """Build the game of these rules, with the figure of rewards first."""
        return Game(
            name=self.name,
            environment=environment,
            episodes=self.episodes,
            tail=self.tail,
            window=self.window,
            counts=counts,
            learns_from=learns_from,
            figures=[rewards.draw, *figures],
            replicates=setting.replicates,
        )


class Dilemma(GameDataset):
    """Game of two actions with payoffs T, R, P and S, and with memory of one round or none."""

    T: float
    R: float
    P: float
    S: float
    memory: Annotated[int, Field(ge=0, le=1)]

    def pair_payoffs(self) -> Tensor:
        """Payoff of the first of two players, by its action and the other's [2, 2]."""
        return torch.tensor([[self.R, self.S], [self.T, self.P]], dtype=torch.float64)
