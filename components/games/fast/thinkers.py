"""Compiled hierarchy of Algorithm 4.1, one replicate at a time: thinkers of levels 1 … k.

The agent is the last thinker.  FPQ-learning is level 1; Q-learning is level 1 against
an opponent with one action, for which there is nothing to forecast.  The tables are
contiguous in one array: arrays in tuples would be reference-counted at every access,
which takes most of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.errors import ConfigMismatchError
from components.games.action_values.q_table import Table
from components.games.fast.arithmetic import FEW, fma, inverse_cdf, lerp, sum_slice, weight
from components.maths.compiled.loops import Array


def pack_tables(values: list[QFunction]) -> tuple[Tensor, Array]:
    """Move all tables into one contiguous tensor and return it with each table's place [k, 3].

    The tables become views of this tensor.  A place is the offset of a table, and its
    numbers of own and other actions.

    Raises:
        Misfit: action values are not kept in tables.
    """
    tables = [q for q in values if isinstance(q, Table)]
    if len(tables) < len(values):
        raise ConfigMismatchError(
            "inference.engine=compiled: asks for action values in tables, model=q_table, or for model=q_linear; "
            "engine=tensors takes all"
        )
    flat = torch.cat([table.values.flatten() for table in tables])
    places = []
    begin = 0
    for table in tables:
        shape = table.values.shape
        size = table.values.numel()
        table.values = flat[begin : begin + size].view(shape)
        places.append((begin, shape[2], shape[3]))
        begin += size
    return flat, np.array(places)


SHARED, FIRST, LAST = range(3)  # equally good actions, as ``Ties`` of components.maths.policies


class Levels(NamedTuple):
    """Settings of the thinkers that are fixed during an episode, one entry per level."""

    alphas: tuple[float, ...]
    epsilons: tuple[float, ...]
    temperatures: tuple[float | None, ...]  # None where a policy is ε-greedy
    forget: float
    gamma: float
    at_next: bool  # whether targets forecast at s', or at s
    bootstraps_ends: bool
    bootstraps_horizon: bool
    # whether equally good actions share, or the first or the last of them is taken
    ties: int = SHARED
    # whether players above level 1 answer one draw of their forecast, or all of it
    drawn: bool = False

    def chances(self, own: Array, dtype: type[np.floating]) -> Array:
        """Action probabilities of the ε-greedy policies [k, 1 + FEW].

        First the probability that exploration gives to every action, then the additional
        probability of each of n equally good actions.

        Twin: ``probabilities`` of components.maths.policies; torch divides a number by a tensor
        through its reciprocal.
        """
        chances = np.empty((len(self.epsilons), 1 + FEW), dtype)
        for j, epsilon in enumerate(self.epsilons):
            chances[j, 0] = epsilon / own[j]
            chances[j, 1:] = (dtype(1) / np.arange(1, FEW + 1).astype(dtype)) * dtype(1 - epsilon)
        return chances

    def steps(self, dtype: type[np.floating]) -> Array:
        """Weights of ``lerp`` from the learning rates [k]."""
        return np.array([weight(alpha, dtype) for alpha in self.alphas])


@runtime_checkable
class CompilablePlayer(Protocol):
    """A player with episodes that compiled loops may play, on either side."""

    def tables(self, mind: Any) -> list[QFunction]: ...  # Q_1 … Q_k, the player's own the last

    def action_counts(
        self, mind: Any
    ) -> Tensor | None: ...  # of the level-1 thinker [R, S, n]; None: there are no counts

    def levels(self, episode: int) -> Levels: ...  # constants of an episode

    def unsupported_option(
        self, linear: bool
    ) -> str | None: ...  # the key, as it is set, that no loop supports; None: there is none


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


def expect(
    q: Array, at: int, own: int, other: int, believed: Array, psi: Array, terms: Array
) -> None:
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
    equals = 0
    place = 0
    # counted without a branch: a processor cannot predict which is the highest
    for a in range(n):
        equals += psi[a] == highest
    if ties != SHARED:
        equals = 1
        for a in range(n):
            if psi[a] == highest:
                place = a
                if ties == FIRST:
                    break
    rest = chances[level, 0]
    best = chances[level, 0] + chances[level, equals]
    for a in range(n):
        answer[a] = best if (psi[a] == highest if ties == SHARED else a == place) else rest


def reply(
    q: Array,
    at: int,
    own: int,
    other: int,
    believed: Array,
    chances: Array,
    level: int,
    ties: int,
    drawn: bool,
    answer: Array,
    psi: Array,
    terms: Array,
    mixed: Array,
) -> None:
    """The policy of a player of ``own`` actions, who answers the forecast or draws of it;
    ``answer`` may be ``believed``.

    Twin: ``LevelK._policy``."""
    if not (drawn and level > 0):  # a player of level 1 has counts, and expects
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


def forecast_opponent(
    q: Array,
    begins: Array,
    counts: Array,
    chances: Array,
    row: int,
    own: int,
    other: int,
    ties: int,
    drawn: bool,
    believed: Array,
    psi: Array,
    terms: Array,
    mixed: Array,
) -> None:
    """Forecast p(b|s) of a row, i·S + s, for ``own`` actions against ``other`` ones.

    The actions ``own`` belong to the agent.  Twin: ``LevelK.foresee``.
    """
    k = len(begins)
    cells = own * other
    if k % 2 == 1:
        forecast(counts, row * other, other, believed)
    else:
        forecast(counts, row * own, own, believed)
    for j in range(k - 1):
        if (k - 1 - j) % 2 == 0:  # the agent, as the opponent would model it
            reply(
                q,
                begins[j] + row * cells,
                own,
                other,
                believed,
                chances,
                j,
                ties,
                drawn,
                believed,
                psi,
                terms,
                mixed,
            )
        else:
            reply(
                q,
                begins[j] + row * cells,
                other,
                own,
                believed,
                chances,
                j,
                ties,
                drawn,
                believed,
                psi,
                terms,
                mixed,
            )


def update(
    q: Array,
    begin: int,
    row: int,
    after: int,
    own: int,
    other: int,
    a: int,
    b: int,
    r: float,
    gamma: float,
    on: bool,
    step: float,
    drawn: bool,
    w: float,
    believed: Array,
    psi: Array,
    terms: Array,
) -> None:
    """Update one table of a player with ``own`` actions.

    Its target uses the forecast, or a draw from it by the uniform number w.

    Twins: ``LevelK._value``, ``DecisionMaker.ahead`` and ``Table.learn``.
    """
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
    q: Array,
    begins: Array,
    counts: Array,
    chances: Array,
    steps: Array,
    forget: float,
    gamma: float,
    row: int,
    after: int,
    at: int,
    own: int,
    other: int,
    a: int,
    b: int,
    r_a: float,
    r_b: float,
    on: bool,
    ties: int,
    drawn: bool,
    w: Array,
    i: int,
    believed: Array,
    answer: Array,
    psi: Array,
    terms: Array,
    mixed: Array,
) -> None:
    """Learn from one move of both players, from a row to the row ``after``.

    ``on`` is true if the target includes the value of ``after``.  Forecasts are made ``at``
    one of the two rows; the last of them is left in ``believed``; ``w`` [k, R] are uniform
    numbers for the draws of each level, of replicate i.

    Twin: ``LevelK.learn``.
    """
    k = len(begins)
    cells = own * other
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
    ):  # Algorithm 4.1, lines 2 and 3: the next level's expectation, from the table just updated
        if (k - 1 - j) % 2 == 0:
            update(
                q,
                begins[j],
                row,
                after,
                own,
                other,
                a,
                b,
                r_a,
                gamma,
                on,
                steps[j],
                drawn and j > 0,
                w[j, i],
                believed,
                psi,
                terms,
            )
            reply(
                q,
                begins[j] + at * cells,
                own,
                other,
                answer,
                chances,
                j,
                ties,
                drawn,
                answer,
                psi,
                terms,
                mixed,
            )
            for c in range(own):
                believed[c] = answer[c]
        else:
            update(
                q,
                begins[j],
                row,
                after,
                other,
                own,
                b,
                a,
                r_b,
                gamma,
                on,
                steps[j],
                drawn and j > 0,
                w[j, i],
                believed,
                psi,
                terms,
            )
            reply(
                q,
                begins[j] + at * cells,
                other,
                own,
                answer,
                chances,
                j,
                ties,
                drawn,
                answer,
                psi,
                terms,
                mixed,
            )
            for c in range(other):
                believed[c] = answer[c]
    update(  # line 4
        q,
        begins[k - 1],
        row,
        after,
        own,
        other,
        a,
        b,
        r_a,
        gamma,
        on,
        steps[k - 1],
        drawn and k > 1,
        w[k - 1, i],
        believed,
        psi,
        terms,
    )


parts = (forecast, count, expect, greedy, reply, forecast_opponent, update, learn)
