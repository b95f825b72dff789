"""Resources to be shared out over positions that several attackers choose from."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb
from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.problems import Kind
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.figures.games import rewards
from components.problems.game import Game
from components.problems.table_environment import TableEnvironment
from components.registry import register
from components.trouble import Misfit

MOST_CELLS = 10_000_000  # of a table of rewards


@register("dataset", "blotto")
class Blotto(Dataset[Game]):
    """A Blotto game of security: she shares ``resources`` out over ``positions``, each of M attackers goes to one.

    At every position that is attacked: where her resources are more than the attackers there she gets 1 and they share −1
    evenly, where they are fewer she gets −1 and they share 1, and 0 where they are as many.  Her actions are the
    C(positions + resources − 1, resources) ways of sharing out, in lexical order; attackers see the share of each position.
    Against two who always choose alike, as exponential smoothers do, two resources on three positions are worth −2/3.

    Raises Misfit where the table of rewards would not fit in memory.

    Source: Gallego (2021), section 4.4.2 (after Hart 2008)."""

    kind: ClassVar[Kind] = "game"
    length_key: ClassVar[str | None] = "episodes"
    vectorised: ClassVar[bool] = True
    simulates: ClassVar[frozenset[str]] = frozenset({"numbered_states"})

    positions: Annotated[int, Field(ge=2)]
    resources: PositiveInt
    attackers: PositiveInt
    episodes: PositiveInt
    tail: Annotated[float, Field(gt=0, le=1)]
    window: PositiveInt

    def allocations(self) -> Tensor:
        """What she can do [A, positions], numbers of resources."""
        chosen = combinations_with_replacement(range(self.positions), self.resources)
        return torch.tensor([[places.count(i) for i in range(self.positions)] for places in chosen])

    def load(self, rng: Rng, setting: Setting) -> Game:
        n, M = self.positions, self.attackers
        cells = comb(n + self.resources - 1, self.resources) * n**M
        if cells * (M + 1) > MOST_CELLS:
            raise Misfit(
                f"dataset.attackers={M}: {cells:,} ways to play, more than fit in a table; fewer positions, resources or "
                "attackers"
            )
        hers = self.allocations()
        theirs = torch.tensor(list(product(range(n), repeat=M)))  # [B, M], the last attacker running fastest
        there = torch.nn.functional.one_hot(theirs, n).sum(1)  # attackers at each position [B, positions]
        won = (hers[:, None] - there[None]).sign() * (there > 0)  # [A, B, positions]: 1 hers, −1 theirs
        each = -(won / there.clamp_min(1)).gather(2, theirs.expand(len(hers), -1, -1))  # [A, B, M]
        environment = TableEnvironment(
            reward_a=won.sum(-1)[None].to(setting.device, setting.dtype),
            reward_b=each[None].to(setting.device, setting.dtype),
            transition=torch.zeros(1, len(hers), len(theirs), dtype=torch.long, device=setting.device),
            n_threats=(n,) * M,
            touches=(hers / self.resources)[None].to(setting.device, setting.dtype),
        )
        return Game(
            name=self.name,
            environment=environment,
            episodes=self.episodes,
            tail=self.tail,
            window=self.window,
            figures=[rewards.draw],
            replicates=setting.replicates,
        )
