"""Action values of a player in the compiled loop, and its constants of an episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.games.action_values.q_table import ActionWeights
from components.games.fast.minds import Levels, Mind, constant
from components.maths.compiled.loops import Array


class Seated:
    """Action values of a player in one array; its tensors become views of it."""

    def __init__(
        self,
        values: list[QFunction],
        counts: Callable[[Any], Tensor | None],
        levels: Callable[[int], Levels],
        varies: bool,
        continuing: bool,
        alone: bool = True,
    ) -> None:
        self.counts = counts  # of the level-1 thinker in a memory [R, S, n]
        self.levels = levels  # constants of an episode
        self.varies = varies  # whether they differ between episodes
        self.alone = alone  # False: one of several minds of one type
        self.continuing = continuing  # the next episode begins in the final state of this one
        self.built: tuple[Levels, Tensor | None, Mind] | None = None
        tables = [q for q in values if isinstance(q, ActionWeights)]
        whole = torch.stack([q.values.flatten(2) for q in tables])
        for q, weights in zip(tables, whole, strict=True):
            q.values = weights.view_as(q.values)
        self.own, self.other = tables[-1].values.shape[2:]
        self.weights: Array = whole.numpy()

    def _by_level(self, values: tuple[float, ...]) -> tuple[float, ...] | Array:
        """Values per level; the loop is compiled for the length of a tuple."""
        return values if self.alone else np.array(values)

    def build_mind(self, mind: Any, episode: int) -> Mind:
        """Return the player for the loop in an episode; most episodes reuse that of the previous
        one."""
        counts = self.counts(mind)
        if self.built is not None and self.built[1] is counts:
            levels, _, built = self.built
            if not self.varies or self.levels(episode) == levels:
                if not self.continuing:
                    built.foreseen.fill(np.nan)
                return built
        levels = self.levels(episode)
        built = Mind(
            weights=self.weights,
            counts=np.empty((0, 0, 0), self.weights.dtype) if counts is None else counts.numpy(),
            alphas=self._by_level(levels.alphas),
            epsilons=self._by_level(levels.epsilons),
            temperatures=self._by_level(levels.temperatures),
            foreseen=np.full((self.weights.shape[1], self.other), np.nan),
            keys=levels.keys,
            own=constant(self.own),
            other=constant(self.other),
        )
        self.built = levels, counts, built
        return built
