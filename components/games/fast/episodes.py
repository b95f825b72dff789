"""Compiled episode against an opponent, one replicate after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from components.contracts.opponents import Opponent
from components.games.fast.averaging import (
    Minds,
    choose_agent_action,
    forget_forecasts,
    learn_as_agent,
)
from components.games.fast.minds import Constant, Index, Mind, PlayedRound, Scratch, constant, turn
from components.games.fast.rules import Rules, find_marks, take_step
from components.games.fast.streams import draw_index, draw_uniform, init_stream
from components.games.fast.thinkers import choose_action, learn
from components.games.opponents.exponential_smoother import ExponentialSmoother
from components.games.opponents.fixed_policy import FixedPolicy
from components.games.opponents.tit_for_tat import TitForTat
from components.maths.compiled.loops import Array, compiled

SMOOTHER, FIXED, TIT_FOR_TAT, LEARNER = range(4)


class CompiledOpponent(NamedTuple):
    """An opponent's kind, memory (shared with its tensor) and keys."""

    kind: Constant
    mind: Mind  # of a learner; otherwise the agent's, unused
    # [R, B] estimates of a smoother, or probabilities of a fixed policy
    p: Array = np.zeros((1, 1))
    means: Array = np.zeros(1, np.int64)  # [R] intended action of tit for tat
    beta: float = 0.0
    takes_first: bool = False  # among equal estimates
    forgives: float = 0.0
    errs: float = 0.0


def build_adversary(opponent: Opponent[Any], memory: object, mind: Mind) -> CompiledOpponent:
    """Compile an opponent with its memory; ``mind`` is that of a learner."""
    if not isinstance(memory, Tensor):
        return CompiledOpponent(constant(LEARNER), mind)
    array = memory.numpy()
    if isinstance(opponent, TitForTat):
        kind = constant(TIT_FOR_TAT)
        return CompiledOpponent(
            kind, mind, means=array, forgives=opponent.forgives, errs=opponent.errs
        )
    if isinstance(opponent, ExponentialSmoother):
        first = opponent.ties == "first"
        return CompiledOpponent(
            constant(SMOOTHER), mind, array, beta=opponent.beta, takes_first=first
        )
    assert isinstance(opponent, FixedPolicy), "``is_compiled`` is False for others"
    return CompiledOpponent(constant(FIXED), mind, array)


def choose_target(p: Array, n: int, takes_first: bool, u: float) -> int:
    """Return argmin p; ties go to the first, or are broken at random."""
    least = p[0]
    for b in range(1, n):
        least = min(least, p[b])
    equals = 0
    for b in range(n):
        equals += p[b] == least
    rank = 0 if takes_first else int(u * equals)
    target = 0
    for b in range(n):  # branch-free, as in ``set_greedy``
        target = b if (p[b] == least) & (rank == 0) else target
        rank -= p[b] == least
    return target


def choose_threat(adversary: CompiledOpponent, rules: Rules, i: int, scratch: Scratch) -> int:
    """Return the opponent's action in the state with marks ``scratch.before``."""
    if len(adversary.kind) == LEARNER:
        return choose_action(adversary.mind, i, scratch.before, scratch)
    u = draw_uniform(scratch.stream)
    if len(adversary.kind) == SMOOTHER:
        return choose_target(adversary.p[i], len(rules.threats), adversary.takes_first, u)
    if len(adversary.kind) == FIXED:
        return draw_index(adversary.p[i], len(rules.threats), u)
    meant = 0 if u < adversary.forgives else adversary.means[i]
    return 1 - meant if draw_uniform(scratch.stream) < adversary.errs else meant


def observe_action(adversary: CompiledOpponent, rules: Rules, i: int, row: Index, a: int) -> None:
    """Update the opponent's memory with the agent's action; ``row`` is s·A + a."""
    if len(adversary.kind) == TIT_FOR_TAT:
        adversary.means[i] = a
    if len(adversary.kind) == SMOOTHER and rules.seen[row]:
        for b in range(len(rules.threats)):
            adversary.p[i, b] = (
                adversary.beta * adversary.p[i, b] + (1 - adversary.beta) * rules.shown[row, b]
            )


class Tally(NamedTuple):
    """Results of an episode, for each replicate."""

    s: Array  # [R, n] current states
    total: Array  # [3, R] rewards of the agent and the opponent, and welfare
    firsts: Array  # [2, R] share of moves in which the agent's action was 0, and the opponent's
    moves: Array  # [R]


def play_replicate(
    agent: Minds, adversary: CompiledOpponent, rules: Rules, tally: Tally, i: int, scratch: Scratch
) -> None:
    """Play all moves of replicate i, as in ``Episode.play`` and ``play_move``."""
    kept = 0.0 if rules.last_alone else 1.0  # weight of earlier moves in the return of the episode
    r_a = 0.0
    r_b = 0.0
    welfare = 0.0
    first_a = 0
    first_b = 0
    moves = 0
    find_marks(rules, tally.s, i, scratch, scratch.before)
    for index in range(rules.horizon):
        a = choose_agent_action(agent, i, scratch.before, scratch)
        b = choose_threat(adversary, rules, i, scratch)
        row = np.uint64(tally.s[i, 0] * len(rules.actions) + a if len(scratch.marks) == 1 else a)
        done = take_step(rules, tally.s, i, a, b, scratch)
        observe_action(adversary, rules, i, row, a)
        move = PlayedRound(a, b, scratch.gains[0], scratch.gains[1])
        cut = rules.cut and index == rules.horizon - 1
        if len(adversary.kind) == LEARNER:
            learn(adversary.mind, i, turn(move), done, cut, scratch)
        if done or not rules.ends_alone:
            learn_as_agent(agent, i, move, done, cut, scratch)
        else:
            forget_forecasts(agent, i)
        r_a = kept * r_a + scratch.gains[0]
        r_b = kept * r_b + scratch.gains[1]
        welfare = kept * welfare + scratch.gains[2]
        first_a += a == 0
        first_b += b == 0
        moves += 1
        for m in range(len(scratch.marks)):
            scratch.before[m] = scratch.after[m]
        if done:
            break
    tally.total[0, i] = r_a
    tally.total[1, i] = r_b
    tally.total[2, i] = welfare
    tally.firsts[0, i] = first_a * (1 / moves)
    tally.firsts[1, i] = first_b * (1 / moves)
    tally.moves[i] = moves


@compiled(fast=True, inline=True)
def play_episode(
    agent: Minds,
    adversary: CompiledOpponent,
    rules: Rules,
    seed: Array,
    tally: Tally,
    scratch: Scratch,
) -> None:
    """Play an episode in all replicates."""
    for i in range(len(tally.s)):
        init_stream(seed, i, scratch.stream)
        play_replicate(agent, adversary, rules, tally, i, scratch)
