"""Compiled episode against an opponent, one replicate after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.contracts.games import Environment, NumberedStates
from components.contracts.opponents import Opponent
from components.games.fast.averaging import (
    Minds,
    choose_player_action,
    forget_forecasts,
    learn_as_player,
)
from components.games.fast.minds import (
    FIRST,
    SHARED,
    Constant,
    Index,
    PlayedRound,
    Scratch,
    constant,
    turn,
)
from components.games.fast.rules import Rules, find_marks, take_step
from components.games.fast.streams import draw_index, draw_uniform, init_stream
from components.games.fast.thinkers import set_greedy
from components.games.opponents.exponential_smoother import ExponentialSmoother
from components.games.opponents.fixed_policy import FixedPolicy
from components.games.opponents.tit_for_tat import TitForTat
from components.maths.compiled.loops import Array, compiled

RANDOM, SMOOTHER, LEARNER = range(3)


class CompiledOpponent(NamedTuple):
    """An opponent's kind, memory (shared with its tensor) and keys.

    A smoother acts by p, and a fixed policy and tit for tat draw from p, with p := βp + (1 − β)m
    after an action with the row m; β is 1 or 0 for the latter.
    """

    kind: Constant
    p: Array = np.zeros((1, 1))  # [R, B]
    beta: float = 1.0
    rows: Array = np.zeros((0, 1))  # m of each state and action [S·A, B]
    seen: Array = np.zeros(0, bool)  # [S·A] the opponent observes the action
    ties: int = SHARED  # among equal estimates


def build_adversary(
    opponent: Opponent[Any], memory: object, environment: Environment
) -> CompiledOpponent:
    """Compile an opponent with its memory."""
    if not isinstance(memory, Tensor):
        return CompiledOpponent(constant(LEARNER))
    p = memory.numpy()
    if isinstance(opponent, FixedPolicy):
        return CompiledOpponent(constant(RANDOM), p)
    A = environment.n_actions
    states = environment.n_states if isinstance(environment, NumberedStates) else 1
    rows = torch.arange(states * A)
    if isinstance(opponent, TitForTat):
        replies = opponent.replies()[rows % A].numpy()
        return CompiledOpponent(constant(RANDOM), p, 0.0, replies, np.ones(len(rows), bool))
    assert isinstance(opponent, ExponentialSmoother), "``is_compiled`` is False for others"
    shown, is_observed = environment.observe(rows // A, rows % A)
    seen = np.ones(len(rows), bool) if is_observed is None else is_observed.numpy()
    ties = FIRST if opponent.ties == "first" else SHARED
    return CompiledOpponent(
        constant(SMOOTHER), p, opponent.beta, shown.double().numpy(), seen, ties
    )


def choose_threat(
    adversary: CompiledOpponent, learner: Minds, rules: Rules, i: int, scratch: Scratch
) -> int:
    """Return the opponent's action in the state with marks ``scratch.before``."""
    n = len(rules.threats)
    if len(adversary.kind) == LEARNER:
        return choose_player_action(learner, i, scratch.before, scratch)
    u = draw_uniform(scratch.stream)
    if len(adversary.kind) == RANDOM:
        return draw_index(adversary.p[i], n, u)
    for b in range(n):
        scratch.psi[b] = -adversary.p[i, b]
    set_greedy(scratch.psi, n, 0.0, adversary.ties, scratch.shares, scratch.answer)
    return draw_index(scratch.answer, n, u)


def observe_action(adversary: CompiledOpponent, rules: Rules, i: int, row: Index) -> None:
    """Update the opponent's memory with the agent's action; ``row`` is s·A + a."""
    beta = adversary.beta
    if beta < 1 and adversary.seen[row]:
        for b in range(len(rules.threats)):
            adversary.p[i, b] = beta * adversary.p[i, b] + (1 - beta) * adversary.rows[row, b]


class Tally(NamedTuple):
    """Results of an episode, for each replicate."""

    s: Array  # [R, n] current states
    total: Array  # [3, R] rewards of the agent and the opponent, and welfare
    firsts: Array  # [2, R] share of moves in which the agent's action was 0, and the opponent's
    moves: Array  # [R]


def play_replicate(
    agent: Minds,
    adversary: CompiledOpponent,
    learner: Minds,
    rules: Rules,
    tally: Tally,
    i: int,
    scratch: Scratch,
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
        a = choose_player_action(agent, i, scratch.before, scratch)
        b = choose_threat(adversary, learner, rules, i, scratch)
        row = np.uint64(tally.s[i, 0] * len(rules.actions) + a if len(scratch.marks) == 1 else a)
        done = take_step(rules, tally.s, i, a, b, scratch)
        observe_action(adversary, rules, i, row)
        move = PlayedRound(a, b, scratch.gains[0], scratch.gains[1])
        cut = rules.cut and index == rules.horizon - 1
        if len(adversary.kind) == LEARNER:
            learn_as_player(learner, i, turn(move), done, cut, scratch)
        if done or not rules.ends_alone:
            learn_as_player(agent, i, move, done, cut, scratch)
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
    learner: Minds,
    rules: Rules,
    seed: Array,
    tally: Tally,
    scratch: Scratch,
) -> None:
    """Play an episode in all replicates; ``learner`` is a learning opponent, otherwise unused."""
    for i in range(len(tally.s)):
        init_stream(seed, i, scratch.stream)
        play_replicate(agent, adversary, learner, rules, tally, i, scratch)
