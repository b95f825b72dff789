"""A player in the compiled loop: its action values, counts and constants as arrays.

Source: Gallego (2021), sections 4.3.1 to 4.3.5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array

SHARED, FIRST, LAST = range(3)  # ``Ties`` of components.games.agents.policies
EPSILON_GREEDY = 0.0  # temperature of an ε-greedy policy


# unsigned where a loop would check at each use whether it counts from the end
Index = int | np.uint64
MOST_UNROLLED = 8
Constant = tuple[int, ...] | Array  # its length is meant


def constant(n: int) -> Constant:
    """A number as the length of a tuple, which the loop is compiled for: short loops are unrolled.

    A number above ``MOST_UNROLLED`` is the length of an array, which the loop reads."""
    return (0,) * n if n <= MOST_UNROLLED else np.zeros(n, np.int8)


class Keys(NamedTuple):
    """Constants of an episode that all levels share."""

    forget: float
    gamma: float
    bootstraps_ends: bool
    bootstraps_horizon: bool
    at_next: bool = True  # targets forecast at s'; False: at s
    # levels above 1 answer one draw of the other's action; False: its expectation
    samples: bool = False
    ties: int = SHARED


class Levels(NamedTuple):
    """Constants of an episode; sequences have an entry for each level."""

    alphas: tuple[float, ...]
    epsilons: tuple[float, ...]
    temperatures: tuple[float, ...]  # of softmax policies; ``EPSILON_GREEDY``
    keys: Keys


class Mind(NamedTuple):
    """A player as the loop has it: k levels with ``own`` actions of the player against ``other``
    ones."""

    weights: Array  # [k, R, F, own·other], each level's own action running slowest
    # of the level-1 thinker [R, S, n]; empty: it counts nothing and expects one action
    counts: Array
    alphas: tuple[float, ...] | Array  # [k]
    epsilons: tuple[float, ...] | Array  # [k]
    temperatures: tuple[float, ...] | Array  # [k]
    # [R, n] what the player's own level expects in the present state; NaN: not known
    foreseen: Array
    keys: Keys
    own: Constant
    other: Constant


class Scratch(NamedTuple):
    """Memory for one replicate at a time."""

    q: Array  # Q(s, ·, ·) [own·other], in the type of weights
    psi: Array  # expected values of a player's actions
    answer: Array  # a policy
    mixed: Array  # the mean of policies
    guess: Array  # what a thinker expects of the other
    guess_at: Array  # the same where targets forecast
    before: Array  # marks of s
    after: Array  # marks of s'
    stream: Array  # [1]
    marks: Constant  # as long as a state has marks
    shares: Array  # 1/n
    gains: Array  # [3] rewards of the agent and the opponent, and welfare


class PlayedRound(NamedTuple):
    """A move as one player sees it."""

    a: int  # the player's action
    b: int  # the other's
    r: float
    r_other: float


def turn(move: PlayedRound) -> PlayedRound:
    """The same move as the other player sees it."""
    return PlayedRound(move.b, move.a, move.r_other, move.r)


def is_own(mind: Mind, j: int) -> bool:
    """True if the thinker j = 0 … k − 1 takes the player's own side."""
    return (len(mind.alphas) - 1 - j) % 2 == 0


def count_actions(mind: Mind, j: int) -> int:
    """Number of actions of the other player, as the thinker j has it."""
    return len(mind.other) if is_own(mind, j) else len(mind.own)


def count_row(mind: Mind, marks: Array) -> Index:
    """The row of counts of a state: its number in a table, else 0."""
    row: Index = marks[0] if mind.counts.shape[1] > 1 else np.uint64(0)
    return row


def sum_weights(weights: Array, marks: Array, q: Array) -> None:
    """Q(s, ·, ·), the sum of weights [F, own·other] at the marks of s; F marks nothing."""
    features = np.uint64(weights.shape[0])
    cells = weights.shape[1]
    for cell in range(cells):
        value = 0.0
        for m in range(len(marks)):
            if marks[m] < features:
                value += weights[marks[m], cell]
        q[cell] = value
