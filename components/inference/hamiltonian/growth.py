"""The trees of NUTS between two evaluations of the density, compiled.

Loops run over ``rows``, the active ones of C chains, and work in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

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
from components.maths.compiled.loops import Array, compiled

THETA, GRADIENT, MOMENTUM, VELOCITY = range(4)  # rows of an edge; samples omit the last
VALUE, ENERGY = range(2)  # numbers of a state
TRAJECTORY, SUBTREE = range(2)  # indices of samples and weights, levels of the stack


class Leaves(NamedTuple):
    """One state for each of A chains."""

    theta: Array  # [A, P]
    gradient: Array  # ∇ log π(θ) [A, P]
    r: Array  # [A, P]
    velocity: Array  # M⁻¹ r [A, P]
    value: Array  # log π(θ) [A]
    energy: Array  # H(θ, r) [A]


class Trees(NamedTuple):
    """Trajectories of C chains, each with the subtree that doubles it."""

    edges: Array  # states at both ends with r outwards, backwards first [2, C, 4, P]
    edge_values: Array  # log π at both ends [2, C]
    start: Array  # H₀, the energy of the first state [C]
    rho: Array  # sum of all momenta, forwards [C, P]
    # stretches [L, C, 5, P]: of the trajectory, in the direction of the subtree, and of the subtree
    stack: Array
    samples: Array  # selected states of trajectory and subtree [2, 3, C, P]
    levels: Array  # log π and H of these [2, 2, C]
    log_weight: Array  # log Σ e^{H₀ − H} of trajectory and subtree [2, C]
    rates: Array  # Σ min(1, e^{H₀ − H}) over all states but the first [C]
    n_steps: Array  # [C]
    depth: Array  # accepted doublings [C]
    diverging: Array  # [C] bool


def make_trees(C: int, P: int, max_depth: int, dtype: Any) -> Trees:
    """Allocate trees."""
    return Trees(
        edges=np.empty((2, C, 4, P), dtype),
        edge_values=np.empty((2, C), dtype),
        start=np.empty(C, dtype),
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


def set_sample(trees: Trees, place: int, c: int, leaves: Leaves, m: int) -> None:
    """Set leaf m as the sample of chain c at this index."""
    samples = trees.samples[place]
    for i in range(samples.shape[2]):
        samples[THETA, c, i] = leaves.theta[m, i]
        samples[GRADIENT, c, i] = leaves.gradient[m, i]
        samples[MOMENTUM, c, i] = leaves.r[m, i]
    trees.levels[place, VALUE, c] = leaves.value[m]
    trees.levels[place, ENERGY, c] = leaves.energy[m]


def take_sample(trees: Trees, c: int) -> None:
    """Copy the sample of the subtree to the trajectory."""
    for k in range(trees.samples.shape[1]):
        for i in range(trees.samples.shape[3]):
            trees.samples[TRAJECTORY, k, c, i] = trees.samples[SUBTREE, k, c, i]
    for k in range(trees.levels.shape[1]):
        trees.levels[TRAJECTORY, k, c] = trees.levels[SUBTREE, k, c]


def set_edge(trees: Trees, side: int, c: int, leaves: Leaves, m: int, sign: float) -> None:
    """Set leaf m, with its momentum times the sign, as an edge of chain c."""
    trees.edge_values[side, c] = leaves.value[m]
    edge = trees.edges[side, c]
    for i in range(edge.shape[1]):
        edge[THETA, i] = leaves.theta[m, i]
        edge[GRADIENT, i] = leaves.gradient[m, i]
        edge[MOMENTUM, i] = sign * leaves.r[m, i]
        edge[VELOCITY, i] = sign * leaves.velocity[m, i]


@compiled(fast=True, allocates=False)
def init_trees(trees: Trees, leaves: Leaves) -> None:
    """Start trajectories with one state each."""
    for c in range(len(leaves.theta)):
        set_edge(trees, 0, c, leaves, c, -1.0)
        set_edge(trees, 1, c, leaves, c, 1.0)
        set_sample(trees, TRAJECTORY, c, leaves, c)
        trees.start[c] = leaves.energy[c]
        for i in range(trees.rho.shape[1]):
            trees.rho[c, i] = leaves.r[c, i]


@compiled(fast=True, allocates=False)
def begin_doubling(trees: Trees, rows: Array, u: Array, near: Array, numbers: Array) -> None:
    """Choose a direction, forwards where u_0 < ½.

    θ, ∇ log π and r of the states to continue from are written to ``near`` [3, A, P], log π and H₀
    to ``numbers`` [2, A].
    """
    for m in range(len(rows)):
        c = rows[m]
        side = 1 if u[0, c] < 0.5 else 0
        sign = 1.0 if side else -1.0
        numbers[VALUE, m] = trees.edge_values[side, c]
        numbers[ENERGY, m] = trees.start[c]
        edge = trees.edges[side, c]
        far = trees.edges[1 - side, c]
        stretch = trees.stack[TRAJECTORY, c]
        for i in range(edge.shape[1]):
            stretch[FIRST, i] = -far[MOMENTUM, i]
            stretch[FIRST_VELOCITY, i] = -far[VELOCITY, i]
            stretch[LAST, i] = edge[MOMENTUM, i]
            stretch[LAST_VELOCITY, i] = edge[VELOCITY, i]
            stretch[RHO, i] = sign * trees.rho[c, i]
            near[THETA, m, i] = edge[THETA, i]
            near[GRADIENT, m, i] = edge[GRADIENT, i]
            near[MOMENTUM, m, i] = edge[MOMENTUM, i]


@compiled(fast=True, allocates=False)
def add_leaves(
    trees: Trees, rows: Array, leaves: Leaves, error: Array, i: int, u: Array, left: Array
) -> int:
    """Add state i of the subtrees, with errors H − H₀ [A], and return the number of active
    subtrees.

    Their positions in ``rows`` are written to ``left`` [A]; the others turned or diverged.  A state
    becomes the sample with probability e^{H₀ − H} divided by the sum of the weights so far, decided
    by u_{2 + i}.

    Source: Hoffman & Gelman (2014), Algorithm 3, without its recursion.
    """
    n = 0
    for m in range(len(rows)):
        c = rows[m]
        weight = -error[m]
        trees.n_steps[c] += 1
        trees.rates[c] += math.exp(min(weight, 0.0))
        if error[m] > DIVERGENT:
            trees.diverging[c] = True
            continue
        total = weight if i == 0 else add_logs(trees.log_weight[SUBTREE, c], weight)
        trees.log_weight[SUBTREE, c] = total
        if i == 0 or u[2 + i, c] < math.exp(weight - total):
            set_sample(trees, SUBTREE, c, leaves, m)
        if extend_subtree(trees.stack, c, i, leaves.r[m], leaves.velocity[m]):
            left[n] = m
            n += 1
    return n


@compiled(fast=True, allocates=False)
def end_doubling(trees: Trees, rows: Array, left: Array, leaves: Leaves, u: Array) -> int:
    """Join the full subtrees, at the positions ``left`` of ``rows``, which end at these leaves, and
    return the number of active trajectories.

    Their positions are then the first of ``left``; the others turned.  The sample of a subtree is
    accepted with probability min(1, w_new/w_old), decided by u_1.

    Source: Betancourt (2017), section A.3.2.
    """
    n = 0
    for m in left:
        c = rows[m]
        old = trees.log_weight[TRAJECTORY, c]
        new = trees.log_weight[SUBTREE, c]
        trees.depth[c] += 1
        if u[1, c] < math.exp(new - old):
            take_sample(trees, c)
        trajectory = trees.stack[TRAJECTORY, c]
        subtree = trees.stack[SUBTREE, c]
        if is_turning(trajectory, subtree):
            continue
        side = 1 if u[0, c] < 0.5 else 0
        sign = 1.0 if side else -1.0
        for i in range(trees.rho.shape[1]):
            trees.rho[c, i] = sign * (trajectory[RHO, i] + subtree[RHO, i])
        trees.log_weight[TRAJECTORY, c] = add_logs(old, new)
        set_edge(trees, side, c, leaves, m, 1.0)
        left[n] = m
        n += 1
    return n
