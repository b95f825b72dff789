"""Compiled Algorithm 4.1 for one replicate: thinkers of levels 1 … k; the last is the player's own.

FPQ-learning is level 1, and Q-learning level 1 against an opponent with one action. Action values
are sums of weights at the marks of a state; in a table, the only mark is the number of the state.

Source: Gallego (2021), sections 4.3.1 to 4.3.5."""

from __future__ import annotations

import math

import numpy as np

from components.games.fast.minds import (
    FIRST,
    SHARED,
    Index,
    Mind,
    PlayedRound,
    Scratch,
    count_actions,
    count_row,
    is_own,
    turn,
    value_at,
)
from components.games.fast.streams import draw_index, draw_uniform
from components.maths.compiled.loops import Array


def largest(psi: Array, n: int) -> float:
    """Return the largest of n values."""
    highest = psi[0]
    for a in range(1, n):
        highest = max(highest, psi[a])
    return float(highest)


def forecast(mind: Mind, i: int, marks: Array, guess: Array) -> None:
    """Compute the Dirichlet forecast of the level-1 thinker, α / Σα."""
    if mind.counts.size == 0:
        guess[0] = 1
        return
    counts = mind.counts[i, count_row(mind, marks)]
    n = count_actions(mind, 0)
    total = 0.0
    for b in range(n):
        total += counts[b]
    share = 1 / total
    for b in range(n):
        guess[b] = counts[b] * share


def count_action(mind: Mind, i: int, marks: Array, seen: int) -> None:
    """Apply Algorithm 4.4: α := λα, then α_seen := α_seen + 1."""
    if mind.counts.size == 0:
        return
    counts = mind.counts[i, count_row(mind, marks)]
    for b in range(count_actions(mind, 0)):
        counts[b] *= mind.levels.forget
    counts[seen] += 1


def expect(
    weights: Array, marks: Array, own: int, other: int, guess: Array, scratch: Scratch
) -> None:
    """Compute ψ(s, a) = Σ_b Q(s, a, b) p(b|s), eq. (4.3)."""
    row = weights[marks[0]]
    for a in range(own):
        value = 0.0
        for b in range(other):
            value += value_at(row, weights, marks, a * other + b, scratch) * guess[b]
        scratch.psi[a] = value


def set_softmax(psi: Array, n: int, temperature: float, answer: Array) -> None:
    """Compute the softmax policy of values ψ."""
    highest = largest(psi, n)
    total = 0.0
    for a in range(n):
        answer[a] = math.exp((psi[a] - highest) / temperature)
        total += answer[a]
    for a in range(n):
        answer[a] /= total


def set_greedy(psi: Array, n: int, epsilon: float, ties: int, shares: Array, answer: Array) -> None:
    """Compute the ε-greedy policy of values ψ."""
    highest = largest(psi, n)
    equals = 0
    for a in range(n):  # branch-free count: the branch would be unpredictable
        equals += psi[a] == highest
    rest = epsilon * shares[n]
    best = 1 - epsilon
    if ties == SHARED:
        best *= shares[equals]  # a division would take as long as all other operations
        for a in range(n):
            answer[a] = rest + best * (psi[a] == highest)
        return
    place = 0
    for a in range(n):
        place = a if psi[a] == highest and not (ties == FIRST and psi[place] == highest) else place
    for a in range(n):
        answer[a] = rest + best * (a == place)


def set_policy(mind: Mind, j: int, psi: Array, n: int, scratch: Scratch, answer: Array) -> None:
    """Compute the policy of thinker j with n actions of values ψ."""
    if mind.levels.temperatures[j] > 0:
        set_softmax(psi, n, mind.levels.temperatures[j], answer)
    else:
        set_greedy(psi, n, mind.levels.epsilons[j], mind.levels.ties, scratch.shares, answer)


def respond(mind: Mind, j: int, i: int, marks: Array, guess: Array, scratch: Scratch) -> None:
    """Replace the forecast p(other|s) of thinker j by its own policy in s."""
    n_own = count_actions(mind, j + 1)
    other = count_actions(mind, j)
    weights = mind.weights[j, i]
    psi = scratch.psi
    if not (mind.levels.samples and j > 0):
        expect(weights, marks, n_own, other, guess, scratch)
        set_policy(mind, j, psi, n_own, scratch, guess)
        return
    row = weights[marks[0]]
    for a in range(n_own):
        scratch.mixed[a] = 0
    for b in range(other):
        for a in range(n_own):
            psi[a] = value_at(row, weights, marks, a * other + b, scratch)
        set_policy(mind, j, psi, n_own, scratch, scratch.answer)
        for a in range(n_own):
            scratch.mixed[a] += guess[b] * scratch.answer[a]
    for a in range(n_own):
        guess[a] = scratch.mixed[a]


def foresee(mind: Mind, i: int, marks: Array, scratch: Scratch) -> None:
    """Write the player's forecast in the current state to ``scratch.guess``."""
    guess = scratch.guess
    if math.isnan(mind.foreseen[i, 0]):
        forecast(mind, i, marks, guess)
        for j in range(len(mind.levels.alphas) - 1):
            respond(mind, j, i, marks, guess, scratch)
    else:
        for b in range(len(mind.other)):
            guess[b] = mind.foreseen[i, b]


def choose_action(mind: Mind, i: int, marks: Array, scratch: Scratch) -> int:
    """Choose an action of the player in the state with these marks."""
    foresee(mind, i, marks, scratch)
    respond(mind, len(mind.levels.alphas) - 1, i, marks, scratch.guess, scratch)
    return draw_index(scratch.guess, len(mind.own), draw_uniform(scratch.stream))


def move_weights(
    weights: Array, cell: Index, target: float, alpha: float, scratch: Scratch
) -> None:
    """Update w := w + α (target − Q) at the marks of a state.

    With one mark, Q − w is 0, so that α = 1 gives exactly the target."""
    marks = scratch.before
    if len(scratch.marks) == 1:
        w = weights[marks[0], cell]
        weights[marks[0], cell] = (1 - alpha) * w + alpha * target
        return
    value = value_at(weights[marks[0]], weights, marks, cell, scratch)
    for m in range(len(marks)):
        if marks[m] < np.uint64(len(weights)):
            w = weights[marks[m], cell]
            weights[marks[m], cell] = (1 - alpha) * w + alpha * (target - (value - w))


def update_values(
    mind: Mind, j: int, i: int, move: PlayedRound, goes_on: bool, guess: Array, scratch: Scratch
) -> None:
    """Update w := w + α (r + γ max_own E[Q(s', own, other)] − Q(s, a, b)) at the marks of s;
    without the second term unless the game ``goes_on``.

    The expectation is over ``guess``, or over one draw from it.
    """
    n_own = count_actions(mind, j + 1)
    other = count_actions(mind, j)
    weights = mind.weights[j, i]
    psi = scratch.psi
    target = move.r
    if goes_on:
        if mind.levels.samples and j > 0:
            row = weights[scratch.after[0]]
            drawn = draw_index(guess, other, draw_uniform(scratch.stream))
            for a in range(n_own):
                psi[a] = value_at(row, weights, scratch.after, a * other + drawn, scratch)
        else:
            expect(weights, scratch.after, n_own, other, guess, scratch)
        target = move.r + mind.levels.gamma * largest(psi, n_own)
    cell = np.uint64(move.a * other + (move.b if other > 1 else 0))
    move_weights(weights, cell, target, mind.levels.alphas[j], scratch)


def learn(mind: Mind, i: int, move: PlayedRound, done: bool, cut: bool, scratch: Scratch) -> None:
    """Learn from a move from ``scratch.before`` to ``scratch.after``: Algorithm 4.1, lines 2 to 4.

    ``done`` means that s' is terminal, ``cut`` that the horizon ends the episode there."""
    goes_on = (mind.levels.bootstraps_horizon or not cut) and (
        mind.levels.bootstraps_ends or not done
    )
    k = len(mind.levels.alphas)
    count_action(mind, i, scratch.before, move.b if k % 2 == 1 else move.a)
    forecast_marks = scratch.after if mind.levels.at_next else scratch.before
    answers = scratch.guess_at
    forecast(mind, i, forecast_marks, answers)
    guess = answers
    if not mind.levels.at_next:  # level 1 counts, and always forecasts at s'
        guess = scratch.guess
        forecast(mind, i, scratch.after, guess)
    for j in range(k):
        update_values(
            mind, j, i, move if is_own(mind.levels, j) else turn(move), goes_on, guess, scratch
        )
        if j < k - 1:
            respond(mind, j, i, forecast_marks, answers, scratch)
            guess = answers
    for b in range(len(mind.other)):
        mind.foreseen[i, b] = answers[b] if mind.levels.at_next else math.nan
