"""The rules of the coin game, of every replicate, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from components.games.fast.arithmetic import inverse_cdf, loop
from components.maths.compiled.loops import Array


def move_cell(cell: int, action: int, size: int) -> int:
    """Twin: ``CoinEnvironment.moved``; up, right, down, left."""
    row = cell // size
    column = cell % size
    if action == 0:
        row = max(row - 1, 0)
    elif action == 1:
        column = min(column + 1, size - 1)
    elif action == 2:
        row = min(row + 1, size - 1)
    else:
        column = max(column - 1, 0)
    return row * size + column


def mark_cells(s: Array, i: int, cells: int, places: Array) -> None:
    """Twin: ``CoinEnvironment.marks``."""
    for m in range(4):
        places[i, m] = m * cells + s[i, m] if s[i, m] < cells else 4 * cells


parts = (move_cell, mark_cells)


@cache
def opening() -> Callable[..., Any]:
    """Marks [R, 4] of where an episode begins."""

    def mark(s: Array, size: int, places: Array) -> None:
        for i in range(len(s)):
            mark_cells(s, i, size * size, places)

    return loop(mark, parts)


@cache
def moving() -> Callable[..., Any]:
    """One move: both players choose, and s [R, 4] and its marks become those after the move.

    The choices use flat policies and the uniforms of move ``at``.  ``gains`` [2, R] are the
    rewards of the move; ``total`` [3, R] the agent's and the opponent's rewards, and
    welfare; ``tally`` [2, R] how often the agent's action was 0, and the opponent's.
    Twins: ``Episode.play``, ``CoinEnvironment.step``.
    """

    def move(
        s: Array,
        size: int,
        share: Array,
        hers: Array,
        his: Array,
        u: Array,
        v: Array,
        at: int,
        after: Array,
        a: Array,
        b: Array,
        gains: Array,
        total: Array,
        tally: Array,
        edge: Array,
    ) -> None:
        cells = size * size
        half = share[2]
        replicates = len(s)
        for i in range(replicates):
            a[i] = inverse_cdf(hers, i * 4, 4, u[at * replicates + i], edge)
            b[i] = inverse_cdf(his, i * 4, 4, v[at * replicates + i], edge)
            s[i, 0], s[i, 1] = move_cell(s[i, 0], a[i], size), move_cell(s[i, 1], b[i], size)
            gains[0, i] = gains[1, i] = 0
            for m in range(2, 4):
                has_agent = s[i, m] == s[i, 0]
                has_opponent = s[i, m] == s[i, 1]
                if has_agent and has_opponent:
                    gains[0, i] += share[0]
                    gains[1, i] += share[1]
                elif has_agent:
                    gains[0, i] += 1
                elif has_opponent:
                    gains[1, i] += 1
                if has_agent or has_opponent:
                    s[i, m] = cells
            mark_cells(s, i, cells, after)
            total[0, i] += gains[0, i]
            total[1, i] += gains[1, i]
            total[2, i] += (gains[0, i] + gains[1, i]) * half
            tally[0, i] += a[i] == 0
            tally[1, i] += b[i] == 0

    return loop(move, parts)
