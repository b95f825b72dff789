"""The stateless friend-or-foe game."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveFloat

from components.contracts.capabilities import NumberedStates
from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.games.environments.game import Game
from components.games.environments.game_dataset import GameDataset
from components.games.environments.table_environment import TableEnvironment
from components.registry import register


@register("dataset", "friend_or_foe")
class FriendOrFoe(GameDataset):
    """Stateless friend-or-foe game: the agent opens one of several boxes.

    The adversary hid the good reward in one box.  r_A(a, b) = +reward if a = b, else
    −reward, where b is the target in which the adversary put the positive reward; the
    adversary's assumed rewards make it a zero-sum game, r_B = −r_A, or the two values of
    ``believed``, for the agent in the right and in a wrong box (Figure 4.5).  There is one state,
    so s' = s.

    Source: Gallego (2021), section 4.4.1 (stateless variant; after Leike et al. 2017).
    """

    simulates = {NumberedStates}

    targets: AtLeastTwo
    reward: PositiveFloat
    believed: Annotated[list[float], Field(min_length=2, max_length=2)] | None

    def load(self, rng: Rng, setting: Setting) -> Game:
        # [1, A, B]
        same = setting.place(torch.eye(self.targets))[None]
        reward_a = self.reward * (2 * same - 1)
        hit_reward, missed = self.believed or (-self.reward, self.reward)
        environment = TableEnvironment(
            reward_a=reward_a,
            reward_b=(missed + (hit_reward - missed) * same).unsqueeze(-1),
            transition=torch.zeros_like(reward_a, dtype=torch.long),
            n_threats=(self.targets,),
            touches=same,
        )
        return self.build_game(environment, setting)
