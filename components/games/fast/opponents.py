"""Opponents who have a compiled twin: what they draw, choose and remember, one replicate at a
time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.contracts.attackers import Opponent
from components.games.fast.arithmetic import inverse_cdf
from components.games.opponents.exponential_smoother import ExponentialSmoother
from components.games.opponents.fixed_policy import FixedPolicy
from components.games.opponents.tit_for_tat import TitForTat
from components.maths.compiled.loops import Array

SMOOTHER, FIXED, TIT_FOR_TAT = range(3)
NAMES = "exponential_smoother, fixed_policy and tit_for_tat"


class CompiledOpponent(NamedTuple):
    """The kind of an opponent, its memory (shared with its tensor) and its parameters."""

    who: int
    p: Array  # [R·B] of a smoother the estimates, of a fixed policy the probabilities
    means: Array  # [R] long: the intended action of tit for tat
    smooths: Array  # [2] β and 1 − β, in the type of the estimates
    # [2] probabilities that tit for tat forgives, and that it errs; for a smoother, 1 if the first
    # of equal estimates is taken
    odds: Array


def _compile_smoother(opponent: ExponentialSmoother, state: Tensor) -> CompiledOpponent:
    p = state.view(-1).numpy()
    smooths = np.array([opponent.beta, 1 - opponent.beta]).astype(p.dtype)
    odds = np.array([float(opponent.ties == "first"), 0.0])
    return CompiledOpponent(SMOOTHER, p, np.empty(0, np.int64), smooths, odds)


def _compile_fixed_policy(opponent: FixedPolicy, state: Tensor) -> CompiledOpponent:
    p = state.view(-1).numpy()
    return CompiledOpponent(FIXED, p, np.empty(0, np.int64), np.zeros(2, p.dtype), np.zeros(2))


def _compile_tit_for_tat(opponent: TitForTat, state: Tensor) -> CompiledOpponent:
    odds = np.array([opponent.forgives, opponent.errs])
    return CompiledOpponent(TIT_FOR_TAT, np.empty(0), state.numpy(), np.zeros(2), odds)


_COMPILED_OPPONENTS: dict[type[Opponent[Any]], Callable[[Any, Tensor], CompiledOpponent]] = {
    ExponentialSmoother: _compile_smoother,
    FixedPolicy: _compile_fixed_policy,
    TitForTat: _compile_tit_for_tat,
}


def is_compiled(opponent: Opponent[Any]) -> bool:
    """True if the opponent has a compiled twin."""
    return type(opponent) in _COMPILED_OPPONENTS


def adversary(opponent: Opponent[Any], state: Tensor) -> CompiledOpponent:
    """The twin of an opponent who remembers ``state``."""
    return _COMPILED_OPPONENTS[type(opponent)](opponent, state)


def uniforms(opponent: Opponent[Any], state: Tensor) -> Tensor:
    """Buffer for an opponent's uniforms for one move of all replicates, in their order."""
    if isinstance(opponent, TitForTat):
        return torch.empty(2 * len(state), dtype=torch.float64)
    return torch.empty(
        state.numel() if isinstance(opponent, ExponentialSmoother) else len(state),
        dtype=state.dtype,
    )


def n_uniform_rows(opponent: Opponent[Any]) -> int:
    """Number of rows in the buffer of ``uniforms``; a row has one number per replicate."""
    return 2 if isinstance(opponent, TitForTat) else 1


def chooses(
    who: int, p: Array, n: int, means: Array, odds: Array, i: int, u: Array, edge: Array
) -> int:
    """Twins: ``act`` of each of them."""
    if who == FIXED:
        return inverse_cdf(p, i * n, n, u[i], edge)
    if who == TIT_FOR_TAT:
        meant = 0 if u[i] < odds[0] else means[i]
        return 1 - meant if u[len(means) + i] < odds[1] else meant
    begin = i * n
    place = 0
    for b in range(1, n):  # of equal estimates the first, or the one with the least number drawn
        equal = (p[begin + b] == p[begin + place]) & (odds[0] == 0)
        if (p[begin + b] < p[begin + place]) | (equal & (u[begin + b] < u[begin + place])):
            place = b
    return place


def observes(
    who: int,
    p: Array,
    n: int,
    means: Array,
    smooths: Array,
    i: int,
    a: int,
    shown: Array,
    at: int,
    seen: bool,
) -> None:
    """Update the opponent's memory.  Twins: ``observe`` of each opponent.

    ``shown[at : at + n]`` is the agent's action towards each target.
    """
    if who == TIT_FOR_TAT:
        means[i] = a
    elif who == SMOOTHER and seen:
        for b in range(n):
            p[i * n + b] = smooths[0] * p[i * n + b] + smooths[1] * shown[at + b]


parts = (chooses, observes)
