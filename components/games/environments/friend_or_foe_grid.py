"""Friend-or-foe game in a grid: the agent walks to one of two targets."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from components.contracts.capabilities import NumberedStates
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.games.environments.game import Game
from components.games.environments.game_dataset import GameDataset
from components.games.environments.table_environment import TableEnvironment
from components.games.figures.grid_policy import grid_policy
from components.registry import register

ROWS = 4
COLUMNS = 3
START = (3, 1)
TARGETS = ((0, 0), (0, 2))
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


@register("dataset", "friend_or_foe_grid")
class FriendOrFoeGrid(GameDataset):
    """Spatial friend-or-foe game: a grid of 4 × 3 cells with a good and a bad reward.

    The adversary hides the rewards in the upper corners.  The agent starts in the middle of
    the lowest row and moves up, right, down or left; moves into a wall have no effect.  Each move
    costs ``cost``.  The first target reached pays +reward if the adversary hid the good reward
    there at this move, −reward otherwise, and ends the episode, as do ``horizon`` moves.  The
    adversary's assumed rewards are ∓reward at a target and 0 elsewhere; it observes only the target
    that the agent reaches.  States are 3·row + column.  The largest return of an episode is 46 by
    the rules in the text; six cells of Table 4.1 exceed it, because the table used only the reward
    of the last move (``counts``), and learned only from moves to a target (``learns_from``).

    Source: Gallego (2021), section 4.4.1 (spatial variant; after Leike et al. 2017).
    """

    simulates = {NumberedStates}

    reward: PositiveFloat
    cost: NonNegativeFloat
    horizon: PositiveInt
    counts: Literal["total", "last_move"]
    learns_from: Literal["every_move", "ends"]

    def environment(self, setting: Setting) -> TableEnvironment:
        """Return the rules as tables."""
        cells = torch.cartesian_prod(torch.arange(ROWS), torch.arange(COLUMNS))  # [S, 2]
        border = torch.tensor([ROWS - 1, COLUMNS - 1])
        places = (cells[:, None] + torch.tensor(MOVES)).clamp_min(0).minimum(border)  # [S, A, 2]
        targets = torch.tensor(TARGETS)
        touches = (places[:, :, None] == targets).all(-1).to(setting.dtype)  # [S, A, B]
        # indexed by the target b with the good reward
        good = 2 * touches - touches.sum(-1, keepdim=True)
        bad = touches.sum(-1, keepdim=True) - 2 * touches
        transition = COLUMNS * places[..., 0] + places[..., 1]
        return TableEnvironment(
            reward_a=(self.reward * good - self.cost).to(setting.device),
            reward_b=(self.reward * bad).unsqueeze(-1).to(setting.device),
            transition=transition[..., None].repeat(1, 1, len(TARGETS)).to(setting.device),
            n_threats=(len(TARGETS),),
            touches=touches.to(setting.device),
            ends=(cells[:, None] == targets).all(-1).any(-1).to(setting.device),
            horizon=self.horizon,
            continuing=False,
            start=COLUMNS * START[0] + START[1],
        )

    def load(self, rng: Rng, setting: Setting) -> Game:
        return self.build_game(
            self.environment(setting),
            setting,
            counts=self.counts,
            learns_from=self.learns_from,
            figures=[partial(grid_policy, rows=ROWS, columns=COLUMNS, moves=MOVES, ends=TARGETS)],
        )
