"""Check that the seed of a user's environment determines all its randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import torch

from components.errors import ConfigMismatchError
from components.games.parallel.parallel_game import EpisodeStart, MoveResult, ParallelGame

TRIED = 200  # largest number of moves of an episode that is played twice


def follow(
    game: ParallelGame, seed: int, actions: list[list[int]]
) -> Iterator[EpisodeStart | MoveResult]:
    """Opening and moves of an episode until it ends, or the actions do."""
    opening = game.begin(seed)
    yield opening
    for action in [] if opening.over else actions:
        moved = game.move(action)
        yield moved
        if moved.terminated or moved.truncated:
            return


def check_seeded(
    open_one: Callable[[], ParallelGame], horizon: int, generator: torch.Generator
) -> None:
    """Play two games side by side from the same seeds with the same random actions.

    One of them has an episode behind it.

    Raises:
        ConfigMismatchError: they differ: something is drawn from elsewhere than the seed, or
            stays from the episode before.
    """
    one = open_one()
    other = open_one()

    def draw_integers(below: int, n: int) -> list[int]:
        return torch.randint(below, (n,), generator=generator).tolist()

    def draw_actions() -> list[list[int]]:
        each = [draw_integers(n, min(horizon, TRIED)) for n in one.sizes]
        return [list(actions) for actions in zip(*each, strict=True)]

    first, *seeds = draw_integers(2**31 - 1, 3)
    for _ in follow(one, first, draw_actions()):
        pass
    for seed in seeds:
        actions = draw_actions()
        both = zip_longest(follow(one, seed, actions), follow(other, seed, actions))
        for moves, (result, twin) in enumerate(both):
            if result != twin:
                raise ConfigMismatchError(
                    f"{one.where}: differs after {moves} moves when it is played twice from reset(seed={seed}); let all "
                    "that it draws come from that seed, and nothing stay from the episode before"
                )
    one.close()
    other.close()
