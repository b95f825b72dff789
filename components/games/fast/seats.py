"""Players in the compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.games.action_values.q_table import ActionWeights
from components.games.fast.averaging import Minds
from components.games.fast.minds import Levels, Mind, constant
from components.maths.compiled.loops import Array


@dataclass
class Hierarchy:
    """Action values of all modelled players, and the counts of the level-1 players."""

    # Q_1 … Q_(k−1) for each opponent in turn, and the agent's Q_k last
    q: list[QFunction]
    # of the level-1 players [R, S, n], for the opponents in turn; None if there are no counts
    counts: Any
    seat: Seat = not_checkpointed()  # with the numbers of actions that the level-1 players count
    rng: Rng = not_checkpointed()


class CompiledPlayer:
    """A player's action values in arrays; its tensors become views of them."""

    def __init__(
        self,
        hierarchies: list[Hierarchy],
        right: Array,  # [R, m] as in ``Minds``
        levels_at: Callable[[int], list[Levels]],
        varies: bool,
        continuing: bool,
    ) -> None:
        self.levels_at = levels_at  # constants of each hierarchy in an episode
        self.levels: list[Levels] = []
        self.varies = varies  # the constants differ between episodes
        self.continuing = continuing  # the next episode begins in the final state of this one
        minds = map(stack, hierarchies, levels_at(0))
        self.minds = Minds(tuple(minds), right)
        self._update_levels(0)

    def _update_levels(self, episode: int) -> bool:
        """Update the constants of an episode; return True if they change."""
        levels = self.levels_at(episode)
        if levels == self.levels:
            return False
        self.levels = levels
        if len(levels) > 1:  # minds of one type: the loop is compiled for the length of a tuple
            levels = [
                each._replace(
                    alphas=np.array(each.alphas),
                    epsilons=np.array(each.epsilons),
                    temperatures=np.array(each.temperatures),
                )
                for each in levels
            ]
        minds = zip(self.minds.minds, levels, strict=True)
        self.minds = self.minds._replace(
            minds=tuple(mind._replace(levels=each) for mind, each in minds)
        )
        return True

    def at(self, episode: int) -> Minds:
        """The player in an episode."""
        changes = self.varies and self._update_levels(episode)
        if changes or not self.continuing:
            for mind in self.minds.minds:
                mind.foreseen.fill(np.nan)
        return self.minds


def stack(hierarchy: Hierarchy, levels: Levels) -> Mind:
    """Stack the action values of a level-k thinker in one array; they become views of it."""
    tables = [q for q in hierarchy.q if isinstance(q, ActionWeights)]
    stacked_values = torch.stack([q.values.flatten(2) for q in tables])
    for q, weights in zip(tables, stacked_values, strict=True):
        q.values = weights.view_as(q.values)
    own, other = tables[-1].values.shape[2:]
    weights = stacked_values.numpy()
    return Mind(
        weights=weights,
        counts=np.empty((0, 0, 0), weights.dtype)
        if hierarchy.counts is None
        else hierarchy.counts.numpy(),
        foreseen=np.full((weights.shape[1], other), np.nan),
        levels=levels,
        own=constant(own),
        other=constant(other),
    )
