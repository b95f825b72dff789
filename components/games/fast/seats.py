"""A level-k thinker in the compiled loop."""

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
from components.games.fast.minds import Levels, Mind, constant


@dataclass
class Hierarchy:
    """Action values of all modelled players, and the counts of the level-1 players."""

    # Q_1 … Q_(k−1) for each opponent in turn, and the agent's Q_k last
    q: list[QFunction]
    # of the level-1 players [R, S, n], for the opponents in turn; None if there are no counts
    counts: Any
    seat: Seat = not_checkpointed()
    counted: Seat = not_checkpointed()  # with the numbers of actions that the level-1 players count
    rng: Rng = not_checkpointed()


class Seated:
    """A player's action values in one array; its tensors become views of it."""

    def __init__(
        self,
        mind: Hierarchy,
        levels: Callable[[int], Levels],
        varies: bool,
        continuing: bool,
        alone: bool = True,
    ) -> None:
        self.levels_at = levels  # constants of an episode
        self.varies = varies  # the constants differ between episodes
        self.alone = alone  # False for one of several minds of one type
        self.continuing = continuing  # the next episode begins in the final state of this one
        self.levels = levels(0)
        tables = [q for q in mind.q if isinstance(q, ActionWeights)]
        stacked_values = torch.stack([q.values.flatten(2) for q in tables])
        for q, weights in zip(tables, stacked_values, strict=True):
            q.values = weights.view_as(q.values)
        own, other = tables[-1].values.shape[2:]
        weights = stacked_values.numpy()
        self.mind = Mind(
            weights=weights,
            counts=np.empty((0, 0, 0), weights.dtype)
            if mind.counts is None
            else mind.counts.numpy(),
            foreseen=np.full((weights.shape[1], other), np.nan),
            levels=self._by_level(),
            own=constant(own),
            other=constant(other),
        )

    def _by_level(self) -> Levels:
        """Constants by level; the loop is compiled for the length of a tuple."""
        levels = self.levels
        if self.alone:
            return levels
        return levels._replace(
            alphas=np.array(levels.alphas),
            epsilons=np.array(levels.epsilons),
            temperatures=np.array(levels.temperatures),
        )

    def at(self, episode: int) -> Mind:
        """The player in an episode."""
        changes = self.varies and self.levels_at(episode) != self.levels
        if changes:
            self.levels = self.levels_at(episode)
            self.mind = self.mind._replace(levels=self._by_level())
        if changes or not self.continuing:
            self.mind.foreseen.fill(np.nan)
        return self.mind
