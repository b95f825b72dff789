"""Compiled rules of games in tables and of the coin game."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from components.contracts.games import Environment
from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.game import Game
from components.games.environments.moves import welfare
from components.games.environments.table_environment import TableEnvironment
from components.games.fast.minds import Constant, Scratch, constant
from components.maths.compiled.loops import Array


class Rules(NamedTuple):
    """Rules as arrays: cells (s·A + a)·B + b of a table with S states, or a grid of ``size`` for
    the coin game."""

    actions: Constant  # A
    threats: Constant  # B
    horizon: int
    cut: bool  # True if the horizon ends an episode, False if the next one continues from its last state
    last_alone: bool  # the return of an episode is its last reward
    ends_alone: bool  # the agent learns only from moves to a terminal state
    # [3, S·A·B] rewards of the agent and the opponent, and welfare; [3, 4] of a coin
    pays: Array
    after: Array = np.zeros(0, np.int64)  # [S·A·B]: s'
    ends: Array = np.zeros(1, bool)  # [S] bool: states that end an episode
    size: int = 0  # N; 0: a table
    next_cell: Array = np.zeros((0, 4), np.int64)  # [N², 4] cell of a player after an action


def build_rules(game: Game, environment: Environment) -> Rules:
    """Compile the rules of an episode: results of ``step`` and ``welfare`` for each cell of a
    table."""
    rules: dict[str, Any]
    if isinstance(environment, TableEnvironment):
        S, A, B = environment.reward_a.shape
        cells = torch.arange(S * A * B)
        outcome = environment.step(
            cells // (A * B), cells // B % A, (cells % B).unsqueeze(1), torch.Generator()
        )
        pays = torch.stack([outcome.r_a, outcome.r_b[:, 0], welfare(outcome)])
        rules = {
            "after": outcome.s_next.numpy(),
            "ends": np.zeros(S, bool) if environment.ends is None else environment.ends.numpy(),
        }
    else:
        assert isinstance(environment, CoinEnvironment), "``is_compiled`` is False for others"
        A = B = environment.n_actions
        pays = torch.cat([environment.pays, environment.pays.mean(0, keepdim=True)])
        rules = {"size": environment.size, "next_cell": environment.next_cell.numpy()}
    return Rules(
        actions=constant(A),
        threats=constant(B),
        horizon=environment.horizon,
        cut=not environment.continuing,
        last_alone=game.counts == "last_move",
        ends_alone=game.learns_from == "ends",
        pays=pays.double().numpy(),
        **rules,
    )


def find_marks(rules: Rules, s: Array, i: int, scratch: Scratch, marks: Array) -> None:
    """Find the marks of the state of replicate i: its number in a table, or cells of players and
    coins, 4 N² for a coin that was taken."""
    if len(scratch.marks) == 1:
        marks[0] = s[i, 0]
        return
    cells = rules.size * rules.size
    for m in range(4):
        marks[m] = m * cells + s[i, m] if s[i, m] < cells else 4 * cells


def collect_coins(rules: Rules, s: Array, i: int, gains: Array) -> None:
    """Reward players on a coin, and remove it."""
    gains[:] = 0
    for m in range(2, 4):
        takers = 2 * (s[i, m] == s[i, 0]) + (s[i, m] == s[i, 1])
        for player in range(3):
            gains[player] += rules.pays[player, takers]
        if takers > 0:
            s[i, m] = rules.size * rules.size


def take_step(rules: Rules, s: Array, i: int, a: int, b: int, scratch: Scratch) -> bool:
    """Move the state of replicate i, and write rewards and marks; return True at the end of the
    episode."""
    if len(scratch.marks) == 1:
        cell = np.uint64((s[i, 0] * len(rules.actions) + a) * len(rules.threats) + b)
        for m in range(3):
            scratch.gains[m] = rules.pays[m, cell]
        s[i, 0] = rules.after[cell]
    else:
        s[i, 0] = rules.next_cell[s[i, 0], a]
        s[i, 1] = rules.next_cell[s[i, 1], b]
        collect_coins(rules, s, i, scratch.gains)
    find_marks(rules, s, i, scratch, scratch.after)
    return rules.ends[s[i, 0] if len(scratch.marks) == 1 else 0]
