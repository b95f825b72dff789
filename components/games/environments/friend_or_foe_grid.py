"""The friend-or-foe game in a room: the agent walks to one of two targets."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.games.environments.game import Game, GameDataset
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
    """Spatial friend or foe: a room of 4 × 3 cells with a good and a bad reward.

    The adversary hides the rewards in the upper corners.  The agent starts in the middle of
    the lowest row and moves up, right, down or left; a wall leaves it in place.  Each move
    costs ``cost``.  The first target that the agent steps on pays +reward if the adversary
    hid the good one there at this move, −reward otherwise, and ends the episode, as do
    ``horizon`` moves.  The adversary's assumed rewards are ∓reward at a target and 0
    elsewhere; of the agent's moves it sees the target stepped on.  States are
    3·row + column.  An episode is worth 46 at best, by the text's rules; Table 4.1, where
    six cells exceed that, was made with the reward of the last move only (``counts``), and
    with learning only from moves that led to a target (``learns_from``).

    Source: Gallego (2021), section 4.4.1 (spatial variant; after Leike et al. 2017).
    """

    simulates = {"numbered_states"}

    reward: PositiveFloat
    cost: NonNegativeFloat
    horizon: PositiveInt
    counts: Literal["total", "last_move"]
    learns_from: Literal["every_move", "ends"]

    def environment(self, setting: Setting) -> TableEnvironment:
        """The rules as tables."""
        states = ROWS * COLUMNS
        actions = len(MOVES)
        threats = len(TARGETS)
        reward_a = torch.full((states, actions, threats), -self.cost, dtype=setting.dtype)
        reward_b = torch.zeros(states, actions, threats, 1, dtype=setting.dtype)
        transition = torch.zeros(states, actions, threats, dtype=torch.long)
        touches = torch.zeros(states, actions, threats, dtype=setting.dtype)
        is_terminal = torch.zeros(states, dtype=torch.bool)
        for row in range(ROWS):
            for column in range(COLUMNS):
                s = COLUMNS * row + column
                is_terminal[s] = (row, column) in TARGETS
                for a, (down, right) in enumerate(MOVES):
                    place = (
                        min(max(row + down, 0), ROWS - 1),
                        min(max(column + right, 0), COLUMNS - 1),
                    )
                    transition[s, a] = COLUMNS * place[0] + place[1]
                    if place in TARGETS:
                        target = TARGETS.index(place)
                        # by b
                        gain = self.reward * (
                            2 * torch.eye(threats, dtype=setting.dtype)[target] - 1
                        )
                        reward_a[s, a] += gain
                        reward_b[s, a, :, 0] = -gain
                        touches[s, a, target] = 1
        return TableEnvironment(
            reward_a=reward_a.to(setting.device),
            reward_b=reward_b.to(setting.device),
            transition=transition.to(setting.device),
            n_threats=(threats,),
            touches=touches.to(setting.device),
            ends=is_terminal.to(setting.device),
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
