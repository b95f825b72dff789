"""The hierarchy of Algorithm 4.1 for one replicate at a time, compiled: thinkers of levels 1 … k, of whom the last is she.

FPQ-learning is level 1, and Q-learning level 1 against an opponent who has one action, of whom there is nothing to forecast.
Tables lie behind each other in one array: arrays in tuples would be counted at every look, which takes most of the time."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.inference.games.compiled.arithmetic import FEW, fma, inverse_cdf, lerp, sum_slice, weight
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
            "inference.engine=compiled: asks for action values in tables, model=q_table, or for model=q_linear; "
            "engine=tensors takes all"
        )
    whole = torch.cat([table.values.flatten() for table in tables])
    places, begin = [], 0
    for table in tables:
        shape, size = table.values.shape, table.values.numel()
        table.values = whole[begin : begin + size].view(shape)
        places.append((begin, shape[2], shape[3]))
        begin += size
    return whole, np.array(places)


SHARED, FIRST, LAST = range(3)  # equally good actions, as ``Ties`` of components.maths.policies


class Levels(NamedTuple):
    """What is fixed of the thinkers while an episode lasts, an entry for each level."""

    alphas: tuple[float, ...]
    epsilons: tuple[float, ...]
    temperatures: tuple[float | None, ...]  # None where a policy is ε-greedy
    forget: float
    gamma: float
    at_next: bool  # whether targets forecast at s', or at s
    bootstraps_ends: bool
    bootstraps_horizon: bool
    ties: int = SHARED  # whether equally good actions share, or the first or the last of them is taken
    drawn: bool = False  # whether players above level 1 answer one draw of what they forecast, or all of it

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
        """Of ``lerp``, by the learning rates [k]."""
        return np.array([weight(alpha, dtype) for alpha in self.alphas])


@runtime_checkable
class Thinking(Protocol):
    """A player whose episodes may be played by compiled loops, on either side."""

    def tables(self, mind: Any) -> list[QFunction]: ...  # Q_1 … Q_k, the player's own the last

    def action_counts(
        self, mind: Any
    ) -> Tensor | None: ...  # of the level-1 thinker [R, S, n]; None: there is nothing to count

    def levels(self, episode: int) -> Levels: ...  # what is fixed while an episode lasts

    def without_loop(
        self, linear: bool
    ) -> str | None: ...  # the key, as it is set, that no loop serves; None: there is none


def forecast(counts: Array, at: int, n: int, believed: Array) -> None:
    """Twin: ``mean_forecast`` of fictitious_play, α / Σα."""
    total = sum_slice(counts, at, n)
    for b in range(n):
        believed[b] = counts[at + b] / total


def count(counts: Array, at: int, n: int, seen: int, forget: float, one: Array) -> None:
    """Twin: ``count`` of fictitious_play, α := λα, α_b := α_b + 1."""
    for b in range(n):
        one[0] = 1 if b == seen else 0
        counts[at + b] = fma(counts[at + b], forget, one[0])


def expect(q: Array, at: int, own: int, other: int, believed: Array, psi: Array, terms: Array) -> None:
    """Twin: ``expected_values`` of fictitious_play, ψ(s, a) = Σ_b Q(s, a, b) p(b|s)."""
    for a in range(own):
        for b in range(other):
            terms[b] = q[at + a * other + b] * believed[b]
        psi[a] = sum_slice(terms, 0, other)


def greedy(psi: Array, n: int, chances: Array, level: int, ties: int, answer: Array) -> None:
    """Twin: ``probabilities`` of components.maths.policies, ε-greedy."""
    highest = psi[0]
    for a in range(1, n):
        highest = max(highest, psi[a])
    equals, place = 0, 0
    for a in range(n):  # counted without a branch: which is the highest is nothing that a processor could guess
        equals += psi[a] == highest
    if ties != SHARED:
        equals = 1
        for a in range(n):
            if psi[a] == highest:
                place = a
                if ties == FIRST:
                    break
    rest, best = chances[level, 0], chances[level, 0] + chances[level, equals]
    for a in range(n):
        answer[a] = best if (psi[a] == highest if ties == SHARED else a == place) else rest


def reply(
    q: Array, at: int, own: int, other: int, believed: Array, chances: Array, level: int, ties: int, drawn: bool,
    answer: Array, psi: Array, terms: Array, mixed: Array,
) -> None:  # fmt: skip
    """The policy of a player of ``own`` actions, who answers the forecast or draws of it; ``answer`` may be ``believed``.

    Twin: ``LevelK._policy``."""
    if not (drawn and level > 0):  # one of level 1 has counts, and expects
        expect(q, at, own, other, believed, psi, terms)
        greedy(psi, own, chances, level, ties, answer)
        return
    for a in range(own):
        mixed[a] = 0
    for b in range(other):
        for a in range(own):
            psi[a] = q[at + a * other + b]
        greedy(psi, own, chances, level, ties, terms)
        for a in range(own):
            terms[a] = terms[a] * believed[b]
            mixed[a] += terms[a]
    for a in range(own):
        answer[a] = mixed[a]


def foresee(
    q: Array, begins: Array, counts: Array, chances: Array, row: int, own: int, other: int, ties: int, drawn: bool,
    believed: Array, psi: Array, terms: Array, mixed: Array,
) -> None:  # fmt: skip
    """p(b|s) of a row, i·S + s, for her ``own`` actions against ``other`` ones.  Twin: ``LevelK.foresee``."""
    k, cells = len(begins), own * other
    if k % 2 == 1:
        forecast(counts, row * other, other, believed)
    else:
        forecast(counts, row * own, own, believed)
    for j in range(k - 1):
        if (k - 1 - j) % 2 == 0:  # she, as he would model her
            reply(
                q, begins[j] + row * cells, own, other, believed, chances, j, ties, drawn, believed, psi, terms, mixed
            )
        else:
            reply(
                q, begins[j] + row * cells, other, own, believed, chances, j, ties, drawn, believed, psi, terms, mixed
            )


def update(
    q: Array, begin: int, row: int, after: int, own: int, other: int, a: int, b: int, r: float, gamma: float, on: bool,
    step: float, drawn: bool, w: float, believed: Array, psi: Array, terms: Array,
) -> None:  # fmt: skip
    """One table of a player with ``own`` actions, whose target takes the forecast or a draw of it, by the uniform number w.

    Twins: ``LevelK._value``, ``DecisionMaker.ahead`` and ``Table.learn``."""
    then = begin + after * own * other
    if drawn:
        o = inverse_cdf(believed, 0, other, w, terms)
        for c in range(own):
            psi[c] = q[then + c * other + o]
    else:
        expect(q, then, own, other, believed, psi, terms)
    value = psi[0]
    for c in range(1, own):
        value = max(value, psi[c])
    place = begin + (row * own + a) * other + b
    q[place] = lerp(q[place], r + gamma * value if on else r, step)


def learn(
    q: Array, begins: Array, counts: Array, chances: Array, steps: Array, forget: float, gamma: float, row: int, after: int,
    at: int, own: int, other: int, a: int, b: int, r_a: float, r_b: float, on: bool, ties: int, drawn: bool, w: Array, i: int,
    believed: Array, answer: Array, psi: Array, terms: Array, mixed: Array,
) -> None:  # fmt: skip
    """A move of hers and of his from a row to the one ``after``, from which there is something to come (``on``) or nothing;
    forecasts are made ``at`` one of them, the last of which is left in ``believed``; ``w`` [k, R] are uniform numbers for the
    draws of each level, of replicate i.

    Twin: ``LevelK.learn``."""
    k, cells = len(begins), own * other
    if k % 2 == 1:
        count(counts, row * other, other, b, forget, terms)
        forecast(counts, after * other, other, believed)
        if at != after:
            forecast(counts, at * other, other, answer)
        else:
            for c in range(other):
                answer[c] = believed[c]
    else:
        count(counts, row * own, own, a, forget, terms)
        forecast(counts, after * own, own, believed)
        if at != after:
            forecast(counts, at * own, own, answer)
        else:
            for c in range(own):
                answer[c] = believed[c]
    for j in range(
        k - 1
    ):  # Algorithm 4.1, line 2, and line 3: what the next level expects, from the table just updated
        if (k - 1 - j) % 2 == 0:
            update(
                q, begins[j], row, after, own, other, a, b, r_a, gamma, on, steps[j], drawn and j > 0, w[j, i], believed, psi,
                terms,
            )  # fmt: skip
            reply(q, begins[j] + at * cells, own, other, answer, chances, j, ties, drawn, answer, psi, terms, mixed)
            for c in range(own):
                believed[c] = answer[c]
        else:
            update(
                q, begins[j], row, after, other, own, b, a, r_b, gamma, on, steps[j], drawn and j > 0, w[j, i], believed, psi,
                terms,
            )  # fmt: skip
            reply(q, begins[j] + at * cells, other, own, answer, chances, j, ties, drawn, answer, psi, terms, mixed)
            for c in range(other):
                believed[c] = answer[c]
    update(  # line 4
        q, begins[k - 1], row, after, own, other, a, b, r_a, gamma, on, steps[k - 1], drawn and k > 1, w[k - 1, i], believed,
        psi, terms,
    )  # fmt: skip


parts = (forecast, count, expect, greedy, reply, foresee, update, learn)
