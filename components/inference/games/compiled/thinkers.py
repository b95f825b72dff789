"""The hierarchy of Algorithm 4.1 for one replicate at a time, compiled: thinkers of levels 1 … k, of whom the last is she.

FPQ-learning is level 1, and Q-learning level 1 against an opponent who has one action, of whom there is nothing to forecast.
Tables lie behind each other in one array: arrays in tuples would be counted at every look, which takes most of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.inference.games.compiled.arithmetic import FEW, fused, moved, summed, weight
from components.maths.compiled.loops import Array
from components.models.games.q_table import Table
from components.trouble import Misfit


def behind_each_other(values: list[QFunction]) -> tuple[Tensor, Array]:
    """One tensor of which the tables' own are views from now on, and where each begins, own and other actions [k, 3].

    Raises:
        Misfit: action values are kept in something else.
    """
    tables = [q for q in values if isinstance(q, Table)]
    if len(tables) < len(values):
        raise Misfit(
            "inference.engine=compiled: asks for action values in tables, model=q_table; engine=tensors takes all"
        )
    whole = torch.cat([table.values.flatten() for table in tables])
    places, begin = [], 0
    for table in tables:
        shape, size = table.values.shape, table.values.numel()
        table.values = whole[begin : begin + size].view(shape)
        places.append((begin, shape[2], shape[3]))
        begin += size
    return whole, np.array(places)


@dataclass(frozen=True)
class Levels:
    """What is fixed of the thinkers while an episode lasts, an entry for each level."""

    alphas: tuple[float, ...]
    epsilons: tuple[float, ...]
    forget: float
    gamma: float
    at_next: bool  # whether targets forecast at s', or at s
    bootstraps_ends: bool

    def chances(self, own: Array, dtype: type[np.floating]) -> Array:
        """Of the ε-greedy policies: what exploring gives every action, then what each of n equally good ones has beyond that
        [k, 1 + FEW].

        Twin: ``probabilities`` of components.maths.policies; torch divides a number by a tensor by its reciprocal."""
        chances = np.empty((len(self.epsilons), 1 + FEW), dtype)
        for j, epsilon in enumerate(self.epsilons):
            chances[j, 0] = epsilon / own[j]
            chances[j, 1:] = (dtype(1) / np.arange(1, FEW + 1).astype(dtype)) * dtype(1 - epsilon)
        return chances

    def steps(self, dtype: type[np.floating]) -> Array:
        """Of ``moved``, by the learning rates [k]."""
        return np.array([weight(alpha, dtype) for alpha in self.alphas])


def forecast(counts: Array, at: int, n: int, believed: Array) -> None:
    """Twin: ``mean_forecast`` of fictitious_play, α / Σα."""
    total = summed(counts, at, n)
    for b in range(n):
        believed[b] = counts[at + b] / total


def count(counts: Array, at: int, n: int, seen: int, forget: float, one: Array) -> None:
    """Twin: ``count`` of fictitious_play, α := λα, α_b := α_b + 1."""
    for b in range(n):
        one[0] = 1 if b == seen else 0
        counts[at + b] = fused(counts[at + b], forget, one[0])


def expect(q: Array, at: int, own: int, other: int, believed: Array, psi: Array, terms: Array) -> None:
    """Twin: ``expected_values`` of fictitious_play, ψ(s, a) = Σ_b Q(s, a, b) p(b|s)."""
    for a in range(own):
        for b in range(other):
            terms[b] = q[at + a * other + b] * believed[b]
        psi[a] = summed(terms, 0, other)


def greedy(psi: Array, n: int, chances: Array, level: int, answer: Array) -> None:
    """Twin: ``probabilities`` of components.maths.policies, ε-greedy."""
    highest, equals = psi[0], 1
    for a in range(1, n):
        if psi[a] > highest:
            highest, equals = psi[a], 1
        elif psi[a] == highest:
            equals += 1
    rest, best = chances[level, 0], chances[level, 0] + chances[level, equals]
    for a in range(n):
        answer[a] = best if psi[a] == highest else rest


def think(
    q: Array, begins: Array, counts: Array, chances: Array, row: int, own: int, other: int, believed: Array, psi: Array,
    terms: Array,
) -> None:  # fmt: skip
    """ψ(s, ·) of a row, i·S + s, of her ``own`` actions against ``other`` ones.  Twin: ``LevelK.think``."""
    k, cells = len(begins), own * other
    if k % 2 == 1:
        forecast(counts, row * other, other, believed)
    else:
        forecast(counts, row * own, own, believed)
    for j in range(k - 1):
        if (k - 1 - j) % 2 == 0:  # she, as he would model her
            expect(q, begins[j] + row * cells, own, other, believed, psi, terms)
            greedy(psi, own, chances, j, believed)
        else:
            expect(q, begins[j] + row * cells, other, own, believed, psi, terms)
            greedy(psi, other, chances, j, believed)
    expect(q, begins[k - 1] + row * cells, own, other, believed, psi, terms)


def update(
    q: Array, begin: int, row: int, after: int, own: int, other: int, a: int, b: int, r: float, gamma: float, on: bool,
    step: float, believed: Array, psi: Array, terms: Array,
) -> None:  # fmt: skip
    """One table of a player with ``own`` actions.  Twins: ``LevelK._value``, ``DecisionMaker.ahead`` and ``Table.learn``."""
    expect(q, begin + after * own * other, own, other, believed, psi, terms)
    value = psi[0]
    for c in range(1, own):
        value = max(value, psi[c])
    place = begin + (row * own + a) * other + b
    q[place] = moved(q[place], r + gamma * value if on else r, step)


def learn(
    q: Array, begins: Array, counts: Array, chances: Array, steps: Array, forget: float, gamma: float, row: int, after: int,
    at: int, own: int, other: int, a: int, b: int, r_a: float, r_b: float, on: bool, believed: Array, answer: Array, psi: Array,
    terms: Array,
) -> None:  # fmt: skip
    """A move of hers and of his from a row to the one ``after``, from which there is something to come (``on``) or nothing;
    forecasts are made ``at`` one of them.  Twin: ``LevelK.learn``."""
    k, cells = len(begins), own * other
    if k % 2 == 1:
        count(counts, row * other, other, b, forget, terms)
        forecast(counts, after * other, other, believed)
        forecast(counts, at * other, other, answer)
    else:
        count(counts, row * own, own, a, forget, terms)
        forecast(counts, after * own, own, believed)
        forecast(counts, at * own, own, answer)
    for j in range(
        k - 1
    ):  # Algorithm 4.1, line 2, and line 3: what the next level expects, from the table just updated
        if (k - 1 - j) % 2 == 0:
            update(q, begins[j], row, after, own, other, a, b, r_a, gamma, on, steps[j], believed, psi, terms)
            expect(q, begins[j] + at * cells, own, other, answer, psi, terms)
            greedy(psi, own, chances, j, answer)
            for c in range(own):
                believed[c] = answer[c]
        else:
            update(q, begins[j], row, after, other, own, b, a, r_b, gamma, on, steps[j], believed, psi, terms)
            expect(q, begins[j] + at * cells, other, own, answer, psi, terms)
            greedy(psi, other, chances, j, answer)
            for c in range(other):
                believed[c] = answer[c]
    update(q, begins[k - 1], row, after, own, other, a, b, r_a, gamma, on, steps[k - 1], believed, psi, terms)  # line 4


parts = (forecast, count, expect, greedy, think, update, learn)
