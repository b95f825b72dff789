"""A player in the compiled loop: its action values, counts and constants as arrays.

Source: Gallego (2021), sections 4.3.1 to 4.3.5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array

SHARED, FIRST, LAST = range(3)  # ``Ties`` of components.games.agents.policies
EPSILON_GREEDY = 0.0  # temperature of an ε-greedy policy


# unsigned, because the loop would check signed indices for negative values
Index = int | np.uint64
MOST_UNROLLED = 8
Constant = tuple[int, ...] | Array  # its length is the value


def constant(n: int) -> Constant:
    """Encode a number as the length of a tuple, for which loops are compiled and unrolled.

    A number above ``MOST_UNROLLED`` is the length of an array, read at run time."""
    return (0,) * n if n <= MOST_UNROLLED else np.zeros(n, np.int8)


class Levels(NamedTuple):
    """Constants of a level-k thinker in an episode; sequences have one entry per level."""

    alphas: tuple[float, ...] | Array
    epsilons: tuple[float, ...] | Array
    temperatures: tuple[float, ...] | Array  # of softmax policies; ``EPSILON_GREEDY``
    gamma: float
    bootstraps_ends: bool
    bootstraps_horizon: bool
    forget: float = 1.0
    at_next: bool = True  # True if targets forecast at s', False if at s
    # True if levels above 1 respond to one draw of the other's action, False if to its expectation
    samples: bool = False
    ties: int = SHARED


class Mind(NamedTuple):
    """A player in the loop: k levels, with ``own`` actions of the player and ``other`` of its
    opponent."""

    weights: Array  # [k, R, F, own·other], each level's own action varies slowest
    # of the level-1 thinker [R, S, n]; empty if there are no counts, and a fixed forecast
    counts: Array
    # [R, n] forecast of the player's own level in the current state; NaN: unknown
    foreseen: Array
    levels: Levels
    own: Constant
    other: Constant


class Scratch(NamedTuple):
    """Work memory for one replicate."""

    psi: Array  # expected values of a player's actions
    answer: Array  # a policy
    mixed: Array  # the mean of policies
    guess: Array  # forecast of a thinker
    guess_at: Array  # forecast in targets
    before: Array  # marks of s
    after: Array  # marks of s'
    stream: Array  # [1]
    marks: Constant  # length: number of marks of a state
    shares: Array  # 1/n
    gains: Array  # [3] rewards of the agent and the opponent, and welfare


class PlayedRound(NamedTuple):
    """A move from the view of one player."""

    a: int  # the player's action
    b: int  # the opponent's action
    r: float
    r_other: float


def turn(move: PlayedRound) -> PlayedRound:
    """The same move from the perspective of the other player."""
    return PlayedRound(move.b, move.a, move.r_other, move.r)


def is_own(levels: Levels, j: int) -> bool:
    """True if the thinker j = 0 … k − 1 models the player itself."""
    return (len(levels.alphas) - 1 - j) % 2 == 0


def count_actions(mind: Mind, j: int) -> int:
    """Number of actions of the other player for thinker j, i.e. of thinker j − 1."""
    return len(mind.other) if is_own(mind.levels, j) else len(mind.own)


def count_row(mind: Mind, marks: Array) -> Index:
    """Row of counts of a state: its number in a table, otherwise 0."""
    row: Index = marks[0] if mind.counts.shape[1] > 1 else np.uint64(0)
    return row


def value_at(row: Array, weights: Array, marks: Array, number: Index, scratch: Scratch) -> float:
    """Q(s, a, b) of the cell a·B + b: the sum of weights [F, own·other] at the marks of s.

    ``row`` has the weights at the first mark; a mark F is empty."""
    cell = np.uint64(number)
    value = row[cell]
    for m in range(1, len(scratch.marks)):
        if marks[m] < np.uint64(len(weights)):
            value += weights[marks[m], cell]
    return float(value)
