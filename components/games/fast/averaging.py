"""Player in the compiled loop: one model of the other player, or several averaged by their correct
forecasts.

Source: Gallego (2021), Algorithm 4.2 and section 4.3.3."""

from __future__ import annotations

import math
from typing import NamedTuple

from components.games.fast.minds import Mind, PlayedRound, Scratch
from components.games.fast.streams import draw_index, draw_uniform
from components.games.fast.thinkers import (
    choose_action,
    expect,
    foresee,
    learn,
    set_policy,
)
from components.maths.compiled.loops import Array


class Minds(NamedTuple):
    """A player in the compiled loop."""

    minds: tuple[Mind, ...]  # one per possible level of the other player
    right: Array  # [R, m] n_i, with pseudo-counts of the prior; empty means one mind


def add_values(mind: Mind, i: int, marks: Array, share: float, scratch: Scratch) -> None:
    """Add share · Σ_b Q(s, a, b) p(b|s) to ``scratch.mixed``."""
    foresee(mind, i, marks, scratch)
    weights = mind.weights[len(mind.levels.alphas) - 1, i]
    expect(weights, marks, len(mind.own), len(mind.other), scratch.guess, scratch)
    for a in range(len(mind.own)):
        scratch.mixed[a] += share * scratch.psi[a]


def choose_player_action(player: Minds, i: int, marks: Array, scratch: Scratch) -> int:
    """Choose an action by ψ(s, a) = Σ_i p(M_i) Σ_b Q_i(s, a, b) p_{M_i}(b|s)."""
    if len(player.minds) == 1:
        return choose_action(player.minds[0], i, marks, scratch)
    mind = player.minds[0]
    total = 0.0
    for m in range(len(player.minds)):
        total += player.right[i, m]
    for a in range(len(mind.own)):
        scratch.mixed[a] = 0
    for m in range(len(player.minds)):
        add_values(player.minds[m], i, marks, player.right[i, m] / total, scratch)
    set_policy(
        mind, len(mind.levels.alphas) - 1, scratch.mixed, len(mind.own), scratch, scratch.answer
    )
    return draw_index(scratch.answer, len(mind.own), draw_uniform(scratch.stream))


def count_correct(player: Minds, i: int, b: int, scratch: Scratch) -> None:
    """n_i := n_i + 1 if only M_i predicted b, in one draw of each model."""
    hits = 0
    last = 0
    for m in range(len(player.minds)):
        foresee(player.minds[m], i, scratch.before, scratch)
        drawn = draw_index(scratch.guess, len(player.minds[m].other), draw_uniform(scratch.stream))
        if drawn == b:
            hits += 1
            last = m
    if hits == 1:
        player.right[i, last] += 1


def learn_as_player(
    player: Minds, i: int, move: PlayedRound, done: bool, cut: bool, scratch: Scratch
) -> None:
    """Update the counts of correct models, then the models, with a move."""
    if len(player.minds) > 1:
        count_correct(player, i, move.b, scratch)
    for m in range(len(player.minds)):
        learn(player.minds[m], i, move, done, cut, scratch)


def forget_forecasts(player: Minds, i: int) -> None:
    """Invalidate the player's forecasts in the current state."""
    for m in range(len(player.minds)):
        player.minds[m].foreseen[i, 0] = math.nan
