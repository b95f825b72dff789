"""Compiled action values that are linear in a few marks: expected values and learning.

All functions work on every replicate.  ``places`` [R, n] are the indices of the ones
among F features, F for an absent mark; weights w [R, A·B, F].  Twin: ``LinearValues``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from components.games.fast import thinkers
from components.games.fast.arithmetic import loop, sum_slice
from components.games.fast.thinkers import count, expect, forecast
from components.maths.compiled.loops import Array


def q_value(w: Array, i: int, cell: int, places: Array, terms: Array) -> float:
    """Q(s, a, b) = Σ w_ab at the marks of s."""
    features = w.shape[2]
    n = places.shape[1]
    for m in range(n):
        terms[m] = w[i, cell, places[i, m]] if places[i, m] < features else 0
    return sum_slice(terms, 0, n)


def row(w: Array, i: int, places: Array, q: Array, terms: Array) -> None:
    """Q(s, ·, ·) [A·B]."""
    for cell in range(w.shape[1]):
        q[cell] = q_value(w, i, cell, places, terms)


def fill_forecast(counts: Array, counted: bool, believed: Array, i: int, guess: Array) -> None:
    """Forecast p(b) [other] of the other player.

    It comes from the counts [R·other] if that player is ``counted``, otherwise from the
    beliefs about it.
    """
    other = believed.shape[1]
    if counted:
        forecast(counts, i * other, other, guess)
    else:
        for b in range(other):
            guess[b] = believed[i, b]


parts = (*thinkers.parts, q_value, row, fill_forecast)


@cache
def weighing() -> Callable[..., Any]:
    """Expected values ψ(s, ·) [R, own] of a player.

    The player counts the other player's actions, or has beliefs [R, other] about them.
    """

    def weigh(
        w: Array,
        places: Array,
        counts: Array,
        counted: bool,
        believed: Array,
        psi: Array,
        q: Array,
        guess: Array,
        answer: Array,
        terms: Array,
    ) -> None:
        n_actions = psi.shape[1]
        other = believed.shape[1]
        for i in range(len(places)):
            fill_forecast(counts, counted, believed, i, guess)
            row(w, i, places, q, terms)
            expect(q, 0, n_actions, other, guess, answer, terms)
            for a in range(n_actions):
                psi[i, a] = answer[a]

    return loop(weigh, parts)


@cache
def compile_teach() -> Callable[..., Any]:
    """w_ab moves along the marks of s, towards r + γ max_a' E[Q(s', a', b')] or, where nothing is
    to come, r.

    ``rates`` are α and γ.  Twins: ``DecisionMaker.ahead``, ``LinearValues.learn``."""

    def teach(
        w: Array,
        places: Array,
        after: Array,
        counts: Array,
        counted: bool,
        believed: Array,
        a: Array,
        b: Array,
        r: Array,
        rates: Array,
        on: bool,
        q: Array,
        guess: Array,
        answer: Array,
        terms: Array,
    ) -> None:
        features = w.shape[2]
        other = believed.shape[1]
        n_actions = w.shape[1] // other
        for i in range(len(places)):
            target = r[i]
            if on:
                fill_forecast(counts, counted, believed, i, guess)
                row(w, i, after, q, terms)
                expect(q, 0, n_actions, other, guess, answer, terms)
                value = answer[0]
                for c in range(1, n_actions):
                    value = max(value, answer[c])
                target = r[i] + rates[1] * value
            cell = a[i] * other + (b[i] if other > 1 else 0)
            step = rates[0] * (target - q_value(w, i, cell, places, terms))
            for m in range(places.shape[1]):
                if places[i, m] < features:
                    w[i, cell, places[i, m]] += step

    return loop(teach, parts)


@cache
def compile_notice() -> Callable[..., Any]:
    """Counts [R·other] of the observed actions [R].  Twin: ``count`` of fictitious_play."""

    def notice(counts: Array, acts: Array, forget: Array, one: Array) -> None:
        other = len(counts) // len(acts)
        for i in range(len(acts)):
            count(counts, i * other, other, acts[i], forget[0], one)

    return loop(notice, parts)
