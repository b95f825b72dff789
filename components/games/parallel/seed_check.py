"""Check that the seed of a user's environment determines all its randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import torch

from components.errors import ConfigMismatchError
from components.games.parallel.parallel_game import EpisodeStart, MoveResult, ParallelGame

TRIED = 200  # maximum number of moves in the check


def follow(
    game: ParallelGame, seed: int, actions: list[list[int]]
) -> Iterator[EpisodeStart | MoveResult]:
    """Return the start and the moves of an episode, until its end or the end of the actions."""
    opening = game.begin(seed)
    yield opening
    for action in [] if opening.over else actions:
        result = game.move(action)
        yield result
        if result.terminated or result.truncated:
            return


def check_seeded(
    open_one: Callable[[], ParallelGame], horizon: int, generator: torch.Generator
) -> None:
    """Play two games in parallel from the same seeds with the same random actions.

    One of them has played another episode before.

    Raises:
        ConfigMismatchError: they differ, because of randomness outside the seed, or state from the
            previous episode.
    """
    game = open_one()
    other = open_one()

    def draw_integers(below: int, n: int) -> list[int]:
        return torch.randint(below, (n,), generator=generator).tolist()

    def draw_actions() -> list[list[int]]:
        each = [draw_integers(n, min(horizon, TRIED)) for n in game.sizes]
        return [list(actions) for actions in zip(*each, strict=True)]

    first, *seeds = draw_integers(2**31 - 1, 3)
    for _ in follow(game, first, draw_actions()):
        pass
    for seed in seeds:
        actions = draw_actions()
        both = zip_longest(follow(game, seed, actions), follow(other, seed, actions))
        for moves, (result, twin) in enumerate(both):
            if result != twin:
                raise ConfigMismatchError(
                    f"{game.where}: two episodes from reset(seed={seed}) differ after {moves} "
                    f"moves; draw all random numbers from this seed, and reset all "
                    "state between episodes"
                )
    game.close()
    other.close()
