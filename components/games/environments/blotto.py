"""Blotto game: allocation of resources to positions with several attackers."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import NumberedStates
from components.contracts.roles import AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.environments.game import Game
from components.games.environments.game_dataset import GameDataset
from components.games.environments.table_environment import TableEnvironment
from components.registry import register

MOST_CELLS = 10_000_000  # in a table of rewards


@register("dataset", "blotto")
class Blotto(GameDataset):
    """A Blotto game of security: resources are allocated to positions that attackers choose.

    The decision maker allocates ``resources`` to ``positions``; each of M attackers goes to
    one position.  At every position that is attacked: if its resources exceed the attackers
    there, the decision maker gets 1 and they share −1 evenly; if they are fewer, it gets −1
    and they share 1; if they are equal, 0.  The decision maker's actions are the
    C(positions + resources − 1, resources) allocations, in lexical order; attackers see the
    share of each position.  Against two attackers with identical choices, e.g. exponential
    smoothers, the value of two resources on three positions is −2/3.

    Raises:
        ConfigMismatchError: the table of rewards would not fit in memory.

    Source: Gallego (2021), section 4.4.2 (after Hart 2008).
    """

    simulates = {NumberedStates}

    positions: AtLeastTwo
    resources: PositiveInt
    attackers: PositiveInt

    def allocations(self) -> Tensor:
        """Allocations of the decision maker [A, positions], in numbers of resources."""
        placements = combinations_with_replacement(range(self.positions), self.resources)
        return torch.tensor(
            [[places.count(i) for i in range(self.positions)] for places in placements]
        )

    def load(self, rng: Rng, setting: Setting) -> Game:
        n = self.positions
        M = self.attackers
        cells = comb(n + self.resources - 1, self.resources) * n**M
        if cells * (M + 1) > MOST_CELLS:
            raise ConfigMismatchError(
                f"dataset.attackers={M}: {cells:,} joint actions do not fit in a table; use fewer positions, resources or "
                "attackers"
            )
        agent_actions = self.allocations()
        # [B, M], the last attacker varies fastest
        theirs = torch.tensor(list(product(range(n), repeat=M)))
        # attackers at each position [B, positions]
        attack_counts = torch.nn.functional.one_hot(theirs, n).sum(1)
        # [A, B, positions]: 1 the agent's, −1 the opponents'
        won = (agent_actions[:, None] - attack_counts[None]).sign() * (attack_counts > 0)
        each = -(won / attack_counts.clamp_min(1)).gather(
            2, theirs.expand(len(agent_actions), -1, -1)
        )  # [A, B, M]
        reward_a = setting.place(won.sum(-1)[None])
        environment = TableEnvironment(
            reward_a=reward_a,
            reward_b=each[None].to(reward_a),
            transition=torch.zeros_like(reward_a, dtype=torch.long),
            n_threats=(n,) * M,
            touches=(agent_actions / self.resources)[None].to(reward_a),
        )
        return self.build_game(environment, setting)
