"""Games of tests, one replicate and one number at a time, with the draws of ``play``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from support.runs.configured import uniform
from support.small.small_games import programme

from components.contracts.games import Turn
from components.games.environments.game import Game
from runner.execution.rng import Streams


def greedy(psi: Sequence[float], epsilon: float) -> np.ndarray:
    """The ε-greedy policy of values ψ."""
    best = np.asarray(psi) == max(psi)
    return (1 - epsilon) * best / best.sum() + epsilon / len(best)


def safest_policy(table: np.ndarray) -> tuple[float, np.ndarray]:
    """V and π of one state, pure if a pure policy is as safe."""
    worst = table.min(1)
    value, x = programme(table)
    if max(worst) > value - 1e-9:
        return max(worst), greedy(worst, 0.0)
    return value, x


def invert(p: Sequence[float], u: float) -> int:
    """Action selected by a uniform number."""
    total = 0.0
    for i, q in enumerate(p[:-1]):
        total += q
        if u < total:
            return i
    return len(p) - 1


def draws(game: Game) -> tuple[list[list[float]], list[list[int]]]:
    """Uniforms for the agent's choices [T, R], and the opponent's actions, as in ``play``."""
    rng = Streams(0)
    mine = [uniform(rng.noise, game.replicates, 1)[:, 0] for _ in range(game.episodes)]
    nothing = torch.zeros(game.replicates)
    theirs = [game.attacker.act(nothing, Turn(nothing, 0, None), rng) for _ in range(game.episodes)]
    return torch.stack(mine).tolist(), torch.stack(theirs).tolist()


class LiteralMove(NamedTuple):
    """A move of one replicate."""

    s: int
    a: int
    b: int
    r_a: float
    r_b: float
    s_next: int


def literal_moves(
    game: Game, replicate: int, policy: Callable[[int], Sequence[float]]
) -> Iterator[LiteralMove]:
    """Moves of a replicate of ``three_states`` with draws as in ``play``, by the agent's policy in
    s, which may learn between moves."""
    rules = game.environment
    s = 0
    for uniforms, threats in zip(*draws(game), strict=True):
        a = invert(policy(s), uniforms[replicate])
        b = threats[replicate]
        rewards = float(rules.reward_a[s, a, b]), float(rules.reward_b[s, a, b, 0])
        s_next = int(rules.transition[s, a, b])
        yield LiteralMove(s, a, b, *rewards, s_next)
        s = s_next
