"""The growth of the trees of NUTS between two evaluations of the density, compiled.

Loops run over the chains ``rows`` that go on, of C.  The density and the leapfrog steps are
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from components.inference.hamiltonian import turns
from components.inference.hamiltonian.leapfrog import DIVERGENT
from components.inference.hamiltonian.turns import (
    FIRST,
    FIRST_VELOCITY,
    LAST,
    LAST_VELOCITY,
    RHO,
    extend_subtree,
    is_turning,
)
from components.maths.compiled.loops import Array, compile_loop

THETA, GRADIENT, MOMENTUM, VELOCITY = range(4)  # rows of an edge, and but the last of a sample


class Leaf(NamedTuple):
    """States of A chains."""

    theta: Array  # [A, P]
    gradient: Array  # ∇ log π(θ) [A, P]
    r: Array  # [A, P]
    velocity: Array  # M⁻¹ r [A, P]
    value: Array  # log π(θ) [A]
    energy: Array  # H(θ, r) [A]


class Trees(NamedTuple):
    """The trajectories of C chains."""

    edges: Array  # states at both ends with r outwards, backwards first [2, C, 4, P]
    edge_values: Array  # log π there [2, C]
    rho: Array  # sum of all momenta, forwards [C, P]
    stack: Array  # stretches: the trajectory ahead, and its new subtree [L, C, 5, P]
    samples: Array  # the state chosen of the trajectory, and of its new subtree [2, 3, C, P]
    levels: Array  # log π and H of these [2, 2, C]
    log_weight: Array  # log Σ e^{H₀ − H} of the trajectory, and of its new subtree [2, C]
    rates: Array  # Σ min(1, e^{H₀ − H}) [C]
    n_steps: Array  # [C]
    depth: Array  # doublings accepted [C]
    diverging: Array  # [C] bool


def make_trees(C: int, P: int, max_depth: int, dtype: Any) -> Trees:
    """New memory."""
    return Trees(
        edges=np.empty((2, C, 4, P), dtype),
        edge_values=np.empty((2, C), dtype),
        rho=np.empty((C, P), dtype),
        stack=np.empty((max_depth + 1, C, 5, P), dtype),
        samples=np.empty((2, 3, C, P), dtype),
        levels=np.empty((2, 2, C), dtype),
        log_weight=np.zeros((2, C), dtype),
        rates=np.zeros(C, dtype),
        n_steps=np.zeros(C, np.int64),
        depth=np.zeros(C, np.int64),
        diverging=np.zeros(C, np.bool_),
    )


def add_logs(a: float, b: float) -> float:
    """log(eᵃ + eᵇ)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def choose(trees: Trees, place: int, c: int, leaf: Leaf, m: int) -> None:
    """State m becomes the sample of chain c, of its trajectory (0) or of its subtree (1)."""
    samples = trees.samples[place]
    for i in range(samples.shape[2]):
        samples[THETA, c, i] = leaf.theta[m, i]
        samples[GRADIENT, c, i] = leaf.gradient[m, i]
        samples[MOMENTUM, c, i] = leaf.r[m, i]
    trees.levels[place, 0, c] = leaf.value[m]
    trees.levels[place, 1, c] = leaf.energy[m]


def set_edge(trees: Trees, side: int, c: int, leaf: Leaf, m: int, sign: float) -> None:
    """State m becomes an edge of chain c, with its momentum times the sign."""
    trees.edge_values[side, c] = leaf.value[m]
    edge = trees.edges[side, c]
    for i in range(edge.shape[1]):
        edge[THETA, i] = leaf.theta[m, i]
        edge[GRADIENT, i] = leaf.gradient[m, i]
        edge[MOMENTUM, i] = sign * leaf.r[m, i]
        edge[VELOCITY, i] = sign * leaf.velocity[m, i]


def plant(trees: Trees, leaf: Leaf) -> None:
    """Trajectories of one state each."""
    for c in range(len(leaf.theta)):
        set_edge(trees, 0, c, leaf, c, -1.0)
        set_edge(trees, 1, c, leaf, c, 1.0)
        choose(trees, 0, c, leaf, c)
        for i in range(trees.rho.shape[1]):
            trees.rho[c, i] = leaf.r[c, i]


def begin_doubling(trees: Trees, rows: Array, u: Array, start: Array, value: Array) -> None:
    """Turn to a direction, forwards where u_0 < ½; the states to go on from are left in ``start``
    [3, A, P], with log π [A]."""
    for m in range(len(rows)):
        c = rows[m]
        side = 1 if u[0, c] < 0.5 else 0
        sign = 1.0 if side else -1.0
        near = trees.edges[side, c]
        far = trees.edges[1 - side, c]
        value[m] = trees.edge_values[side, c]
        before = trees.stack[0, c]
        for i in range(near.shape[1]):
            before[FIRST, i] = -far[MOMENTUM, i]
            before[FIRST_VELOCITY, i] = -far[VELOCITY, i]
            before[LAST, i] = near[MOMENTUM, i]
            before[LAST_VELOCITY, i] = near[VELOCITY, i]
            before[RHO, i] = sign * trees.rho[c, i]
            start[THETA, m, i] = near[THETA, i]
            start[GRADIENT, m, i] = near[GRADIENT, i]
            start[MOMENTUM, m, i] = near[MOMENTUM, i]


def add_leaf(
    trees: Trees, rows: Array, leaf: Leaf, error: Array, i: int, u: Array, left: Array
) -> int:
    """Take state i of a subtree, with errors H − H₀ [A], and return how many chains go on in it.

    These are the rows ``left`` [A]; others turned or diverged.  A state is chosen with probability
    e^{H₀ − H} over the sum of those so far, if u_{2 + i} is below it.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion.
    """
    going = 0
    for m in range(len(rows)):
        c = rows[m]
        weight = -error[m]
        trees.n_steps[c] += 1
        trees.rates[c] += math.exp(min(weight, 0.0))
        if error[m] > DIVERGENT:
            trees.diverging[c] = True
            continue
        total = weight if i == 0 else add_logs(trees.log_weight[1, c], weight)
        trees.log_weight[1, c] = total
        if i == 0 or u[2 + i, c] < math.exp(weight - total):
            choose(trees, 1, c, leaf, m)
        if extend_subtree(trees.stack, c, i, leaf.r[m], leaf.velocity[m]):
            left[going] = m
            going += 1
    return going


def end_doubling(trees: Trees, rows: Array, left: Array, leaf: Leaf, u: Array) -> int:
    """Join the new subtrees of the rows ``left``, which end at these states, and return how many
    trajectories go on: the first of ``left`` then.  Others turn now.

    The sample of a subtree is taken with probability min(1, w_new/w_old), if u_1 is below it.

    Source: Betancourt (2017), section A.3.2.
    """
    going = 0
    for m in left:
        c = rows[m]
        old = trees.log_weight[0, c]
        new = trees.log_weight[1, c]
        trees.depth[c] += 1
        if u[1, c] < math.exp(new - old):
            for k in range(3):
                for i in range(trees.samples.shape[3]):
                    trees.samples[0, k, c, i] = trees.samples[1, k, c, i]
            for k in range(2):
                trees.levels[0, k, c] = trees.levels[1, k, c]
        before = trees.stack[0, c]
        ahead = trees.stack[1, c]
        if is_turning(before, ahead):
            continue
        side = 1 if u[0, c] < 0.5 else 0
        sign = 1.0 if side else -1.0
        for i in range(trees.rho.shape[1]):
            trees.rho[c, i] = sign * (before[RHO, i] + ahead[RHO, i])
        trees.log_weight[0, c] = add_logs(old, new)
        set_edge(trees, side, c, leaf, m, 1.0)
        left[going] = m
        going += 1
    return going


class Loops(NamedTuple):
    """The compiled loops."""

    plant: Callable[[Trees, Leaf], None]
    begin_doubling: Callable[[Trees, Array, Array, Array, Array], None]
    add_leaf: Callable[[Trees, Array, Leaf, Array, int, Array, Array], int]
    end_doubling: Callable[[Trees, Array, Array, Leaf, Array], int]


@cache
def compiled() -> Loops:
    """The loops, compiled."""
    parts = (*turns.compilable, add_logs, choose, set_edge)
    return Loops(
        *(
            compile_loop(loop, parts, fast=True, allocates=False)
            for loop in (plant, begin_doubling, add_leaf, end_doubling)
        )
    )
