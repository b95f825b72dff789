"""Action values that are linear in a few marks, of every replicate, compiled: what is expected of them, and how they learn.

``places`` [R, n] are the ones among F features, F where there is none; weights w [R, A·B, F].  Twin: ``LinearValues``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from components.inference.games.compiled import thinkers
from components.inference.games.compiled.arithmetic import loop, sum_slice
from components.inference.games.compiled.thinkers import count, expect, forecast
from components.maths.compiled.loops import Array


def q_value(w: Array, i: int, cell: int, places: Array, terms: Array) -> float:
    """Q(s, a, b) = Σ w_ab at the marks of s."""
    features, n = w.shape[2], places.shape[1]
    for m in range(n):
        terms[m] = w[i, cell, places[i, m]] if places[i, m] < features else 0
    return sum_slice(terms, 0, n)


def row(w: Array, i: int, places: Array, q: Array, terms: Array) -> None:
    """Q(s, ·, ·) [A·B]."""
    for cell in range(w.shape[1]):
        q[cell] = q_value(w, i, cell, places, terms)


def fill_forecast(counts: Array, counted: bool, believed: Array, i: int, guess: Array) -> None:
    """p(b) [other] of the other: of counts [R·other] where he is ``counted``, or what is believed of him."""
    other = believed.shape[1]
    if counted:
        forecast(counts, i * other, other, guess)
    else:
        for b in range(other):
            guess[b] = believed[i, b]


parts = (*thinkers.parts, q_value, row, fill_forecast)


@cache
def weighing() -> Callable[..., Any]:
    """ψ(s, ·) [R, own] of a player who counts the other, or believes [R, other] of him."""

    def weigh(
        w: Array, places: Array, counts: Array, counted: bool, believed: Array, psi: Array,
        q: Array, guess: Array, answer: Array, terms: Array,
    ) -> None:  # fmt: skip
        own, other = psi.shape[1], believed.shape[1]
        for i in range(len(places)):
            fill_forecast(counts, counted, believed, i, guess)
            row(w, i, places, q, terms)
            expect(q, 0, own, other, guess, answer, terms)
            for a in range(own):
                psi[i, a] = answer[a]

    return loop(weigh, parts)


@cache
def teaching() -> Callable[..., Any]:
    """w_ab moves along the marks of s, towards r + γ max_a' E[Q(s', a', b')] or, where nothing is to come, r.

    ``rates`` are α and γ.  Twins: ``DecisionMaker.ahead``, ``LinearValues.learn``."""

    def teach(
        w: Array, places: Array, after: Array, counts: Array, counted: bool, believed: Array,
        a: Array, b: Array, r: Array, rates: Array, on: bool,
        q: Array, guess: Array, answer: Array, terms: Array,
    ) -> None:  # fmt: skip
        features, other = w.shape[2], believed.shape[1]
        own = w.shape[1] // other
        for i in range(len(places)):
            target = r[i]
            if on:
                fill_forecast(counts, counted, believed, i, guess)
                row(w, i, after, q, terms)
                expect(q, 0, own, other, guess, answer, terms)
                value = answer[0]
                for c in range(1, own):
                    value = max(value, answer[c])
                target = r[i] + rates[1] * value
            cell = a[i] * other + (b[i] if other > 1 else 0)
            step = rates[0] * (target - q_value(w, i, cell, places, terms))
            for m in range(places.shape[1]):
                if places[i, m] < features:
                    w[i, cell, places[i, m]] += step

    return loop(teach, parts)


@cache
def noticing() -> Callable[..., Any]:
    """Counts [R·other] of what was done [R].  Twin: ``count`` of fictitious_play."""

    def notice(counts: Array, acts: Array, forget: Array, one: Array) -> None:
        other = len(counts) // len(acts)
        for i in range(len(acts)):
            count(counts, i * other, other, acts[i], forget[0], one)

    return loop(notice, parts)
