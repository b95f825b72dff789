"""Iterated bimatrix games."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Literal

import torch
from pydantic import field_validator
from torch import Tensor

from components.contracts.capabilities import NumberedStates
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.games.environments.game import Game
from components.games.environments.game_dataset import Dilemma
from components.games.environments.table_environment import repeat_game
from components.registry import register

Bimatrix = list[list[list[float]]]  # [A][B][2]: rewards of the agent and the opponent

# order of the payoffs for actions 0 (cooperate, stag, swerve, heads) and 1
ORDERS = {"prisoners_dilemma": "TRPS", "stag_hunt": "RTPS", "chicken": "TRSP"}


@register("dataset", "iterated_matrix")
class IteratedMatrix(Dilemma):
    """Bimatrix game of two players, one round per episode, with or without memory of the previous
    round.  ``payoffs`` of prisoners_dilemma (T > R > P > S), stag_hunt (R > T > P > S) and chicken
    (T > R > S > P): (C, C) pays R, R, (C, D) S, T, (D, C) T, S and (D, D) P, P; matching_pennies:
    +1 to the decision maker if both actions are equal, −1 otherwise.  ``bimatrix`` replaces them,
    [[[r_A, r_B], …], …].  With ``memory`` 1 the state is the joint action of the previous round,
    a·B + b, or A·B before the first; without memory there is one state.

    Warns if payoffs are not in the order that their name requires.

    Source: Gallego (2021), section 4.5.3 (Table 4.3); Axelrod (1984).
    """

    simulates = {NumberedStates}

    payoffs: Literal["prisoners_dilemma", "stag_hunt", "chicken", "matching_pennies"]
    bimatrix: Bimatrix | None

    @field_validator("bimatrix")
    @classmethod
    def _check_payoff_table(cls, given: Bimatrix | None) -> Bimatrix | None:
        if given is not None:
            shape = {(len(row), *{len(cell) for cell in row}) for row in given}
            if (
                len(shape) != 1
                or (sizes := shape.pop())[1:] != (2,)
                or sizes[0] < 2
                or len(given) < 2
            ):
                raise ValueError(
                    "must be a bimatrix: two or more rows of equal length with pairs [r_A, r_B]"
                )
            if not all(math.isfinite(r) for row in given for cell in row for r in cell):
                raise ValueError("a reward is not finite")
        return given

    def rewards(self) -> Tensor:
        """r_A and r_B [A, B, 2]."""
        if self.bimatrix is not None:
            return torch.tensor(self.bimatrix, dtype=torch.float64)
        if self.payoffs == "matching_pennies":
            same = 2 * torch.eye(2, dtype=torch.float64) - 1
            return torch.stack([same, -same], -1)
        order = [vars(self)[letter] for letter in ORDERS[self.payoffs]]
        if any(a <= b for a, b in itertools.pairwise(order)):
            ordering = " > ".join(ORDERS[self.payoffs])
            warnings.warn(
                IncompleteResultWarning(
                    f"dataset.payoffs={self.payoffs}: requires {ordering}, but the payoffs differ"
                ),
                stacklevel=1,
            )
        payoff_a = self.pair_payoffs()
        return torch.stack([payoff_a, payoff_a.T], -1)

    def load(self, rng: Rng, setting: Setting) -> Game:
        pays = setting.place(self.rewards())
        return self.build_game(
            repeat_game(pays[..., 0], pays[..., 1:], (pays.shape[1],), self.memory), setting
        )
