"""A move of every replicate that still plays, as one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from components.games.fast import opponents, thinkers, uniforms
from components.games.fast.arithmetic import inverse_cdf, loop, room
from components.games.fast.opponents import chooses, observes
from components.games.fast.thinkers import expect, forecast_opponent, learn, reply
from components.games.fast.uniforms import draw
from components.maths.compiled.loops import Array


@cache
def weighing(actions: int, noticed: int) -> Callable[..., Any]:
    """Expected values ψ(s, ·) [R, A] of those who play, the first ``left`` [1] of ``order`` [R],
    into ``policy``."""
    few = room()

    def weigh(
        q: Array,
        begins: Array,
        counts: Array,
        chances: Array,
        states: int,
        s: Array,
        order: Array,
        left: Array,
        policy: Array,
        ties: int,
        drawn: bool,
    ) -> None:
        believed = few(q)
        psi = few(q)
        terms = few(q)
        mixed = few(q)
        top = begins[len(begins) - 1]
        for place in range(left[0]):
            i = order[place]
            row = i * states + s[i]
            forecast_opponent(
                q,
                begins,
                counts,
                chances,
                row,
                actions,
                noticed,
                ties,
                drawn,
                believed,
                psi,
                terms,
                mixed,
            )
            expect(q, top + row * actions * noticed, actions, noticed, believed, psi, terms)
            for a in range(actions):
                policy[i, a] = psi[a]

    return loop(weigh, thinkers.parts)


parts = (*thinkers.parts, *opponents.parts)


@cache
def _one(actions: int, threats: int, noticed: int) -> Callable[..., Any]:
    """One move of games with fixed numbers of actions, threats and distinguished threats.

    The compiler knows these numbers; ``noticed`` is the number of threats that the agent
    distinguishes.

    The replicates that still play are the first ``left`` [1] of ``order`` [R].
    ``foreseen`` [R, noticed] is the agent's forecast in s, if it is ``ready``: the forecast
    of s' from the last update, valid as long as the thinkers receive no other information.

    ``total`` [3, R] is the agent's reward, the opponent's reward, and welfare; ``tally``
    [3, R] is how often the agent's action was 0, and the opponent's, and the number of
    moves; ``goes_on``: the value of s' counts unless the move ends the episode.  Twins:
    ``Episode.play``, ``Game.move``.
    """

    few = room()

    def move(
        # the agent
        q: Array,
        begins: Array,
        counts: Array,
        chances: Array,
        steps: Array,
        forget_gamma: Array,
        who: int,
        p: Array,
        means: Array,
        smooths: Array,
        odds: Array,  # the opponent
        pays: Array,
        after: Array,
        ends: Array,
        shown: Array,
        seen: Array,  # the rules
        # the state of the episode
        s: Array,
        order: Array,
        left: Array,
        foreseen: Array,
        total: Array,
        tally: Array,
        # uniforms of the agent's actions, of the opponent's and of draws; the agent's policy where
        # it is given
        u: Array,
        v: Array,
        w: Array,
        policy: Array,
        ties: int,
        drawn: bool,
        given: bool,
        at_next: bool,
        bootstraps_ends: bool,
        goes_on: bool,
        last_alone: bool,
        ends_alone: bool,
        ready: bool,
    ) -> None:
        k = len(begins)
        states = len(ends)
        forget = forget_gamma[0]
        gamma = forget_gamma[1]
        targets = len(shown) // (states * actions)
        believed = few(q)
        answer = few(q)
        psi = few(q)
        terms = few(q)
        mixed = few(q)
        n_running = 0
        for place in range(left[0]):
            i = order[place]
            row = i * states + s[i]
            if given:
                for c in range(actions):
                    answer[c] = policy[i, c]
            else:
                if ready:
                    for c in range(noticed):
                        believed[c] = foreseen[i, c]
                else:
                    forecast_opponent(
                        q,
                        begins,
                        counts,
                        chances,
                        row,
                        actions,
                        noticed,
                        ties,
                        drawn,
                        believed,
                        psi,
                        terms,
                        mixed,
                    )
                top = begins[k - 1] + row * actions * noticed
                reply(
                    q,
                    top,
                    actions,
                    noticed,
                    believed,
                    chances,
                    k - 1,
                    ties,
                    drawn,
                    answer,
                    psi,
                    terms,
                    mixed,
                )
            a = inverse_cdf(answer, 0, actions, u[i], terms)
            b = chooses(who, p, threats, means, odds, i, v, terms)
            looked = s[i] * actions + a
            cell = looked * threats + b
            s_next = after[cell]
            r_a = pays[0, cell]
            r_b = pays[1, cell]
            done = ends[s_next]
            observes(who, p, threats, means, smooths, i, a, shown, looked * targets, seen[looked])
            then = i * states + s_next
            if done or not ends_alone:
                row_ahead = then if at_next else row
                on = goes_on and (bootstraps_ends or not done)
                learn(
                    q,
                    begins,
                    counts,
                    chances,
                    steps,
                    forget,
                    gamma,
                    row,
                    then,
                    row_ahead,
                    actions,
                    noticed,
                    a,
                    b if noticed > 1 else 0,
                    r_a,
                    r_b,
                    on,
                    ties,
                    drawn,
                    w,
                    i,
                    believed,
                    answer,
                    psi,
                    terms,
                    mixed,
                )
            elif not given:
                forecast_opponent(
                    q,
                    begins,
                    counts,
                    chances,
                    then,
                    actions,
                    noticed,
                    ties,
                    drawn,
                    believed,
                    psi,
                    terms,
                    mixed,
                )
            for c in range(noticed):
                foreseen[i, c] = believed[c]
            first = last_alone or tally[2, i] == 0
            for m in range(3):
                total[m, i] = pays[m, cell] if first else total[m, i] + pays[m, cell]
            tally[0, i] += a == 0
            tally[1, i] += b == 0
            tally[2, i] += 1
            s[i] = s_next
            order[n_running] = i
            n_running += not done
        left[0] = n_running

    return move


@cache
def moving(actions: int, threats: int, noticed: int) -> Callable[..., Any]:
    """A move."""
    return loop(_one(actions, threats, noticed), parts)


@cache
def walking(actions: int, threats: int, noticed: int) -> Callable[..., Any]:
    """All moves of an episode that may end before its horizon, from their own streams.

    The arguments are the ones of a move; ``one`` [R] is a buffer.
    """
    move = _one(actions, threats, noticed)

    def walk(
        horizon: int,
        noise: Array,
        attack: Array,
        rows: int,
        q: Array,
        begins: Array,
        counts: Array,
        chances: Array,
        steps: Array,
        forget_gamma: Array,
        who: int,
        p: Array,
        means: Array,
        smooths: Array,
        odds: Array,
        pays: Array,
        after: Array,
        ends: Array,
        shown: Array,
        seen: Array,
        s: Array,
        order: Array,
        left: Array,
        foreseen: Array,
        total: Array,
        tally: Array,
        u: Array,
        v: Array,
        w: Array,
        one: Array,
        policy: Array,
        ties: int,
        drawn: bool,
        at_next: bool,
        bootstraps_ends: bool,
        bootstraps_horizon: bool,
        last_alone: bool,
        ends_alone: bool,
        kept: bool,
    ) -> None:
        per = len(v) // (rows * len(order))
        levels = len(begins) if drawn else 0
        for step in range(horizon):
            draw(noise, 1, 1, order, left, u)
            draw(attack, rows, per, order, left, v)
            for level in range(1, levels):
                draw(noise, 1, 1, order, left, one)
                for place in range(left[0]):
                    w[level, order[place]] = one[order[place]]
            goes_on = bootstraps_horizon | (step < horizon - 1)
            ready = kept & (step > 0)
            move(
                q,
                begins,
                counts,
                chances,
                steps,
                forget_gamma,
                who,
                p,
                means,
                smooths,
                odds,
                pays,
                after,
                ends,
                shown,
                seen,
                s,
                order,
                left,
                foreseen,
                total,
                tally,
                u,
                v,
                w,
                policy,
                ties,
                drawn,
                False,
                at_next,
                bootstraps_ends,
                goes_on,
                last_alone,
                ends_alone,
                ready,
            )
            if left[0] == 0:
                break

    return loop(walk, (*parts, *uniforms.parts, move))
