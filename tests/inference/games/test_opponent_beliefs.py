"""Mixtures of Markov chains and counting Bloom filters, compared with literal versions and with one
Dirichlet per state."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, generator
from support.small.small_games import game_of, play, three_states
from torch.testing import assert_close

from components.games.beliefs.bloom_counts import BloomCounts, largest_primes
from runner.execution.rng import Streams

CHAINS = {"name": "markov_chains", "weights": [1.0, 2.0, 0.5], "learn": True}


@pytest.mark.parametrize("learn", [True, False])
def test_mixture_matches_section_4_3_1(learn):
    game = three_states(replicates=3, episodes=40)
    moves = []
    method = component("inference", "fpq_learning", forget=0.9, belief=CHAINS | {"learn": learn})

    class Noted(type(method)):
        def learn(self, mind, seen, episode):
            moves.append(
                [
                    seen.s.tolist(),
                    seen.a.tolist(),
                    seen.b.tolist(),
                    self.forecast_opponent(mind, seen.s, episode),
                ]
            )
            super().learn(mind, seen, episode)

    state, _ = play(game, Noted(**dict(method)))
    for i in range(3):
        by_agent, by_opponent, by_state = (np.ones((n, 3)) for n in (2, 3, 3))
        w = np.array(CHAINS["weights"])
        last = None
        for s, a, b, forecast in moves:
            rows = (
                [by_agent[last[0]], by_opponent[last[1]], by_state[s[i]]]
                if last
                else [by_state[s[i]]] * 3
            )
            each = np.stack([row / row.sum() for row in rows])
            assert forecast[i].tolist() == pytest.approx(w @ each / w.sum())
            if last and learn:
                made = w * each[:, b[i]]
                w = w + made / made.sum()
            for row in rows if last else rows[:1]:
                row *= 0.9
                row[b[i]] += 1
            last = a[i], b[i]
        assert state.mind.counts.weights[i, 0].tolist() == pytest.approx(w)


def test_tit_for_tat_is_identified():
    """Tit for tat in one state: beliefs by state are uniform, and beliefs by chain follow the
    agent's action."""
    results = {}
    for name, belief in {"state": "by_state", "chains": CHAINS}.items():
        opponent = component("attacker", "tit_for_tat")
        game = game_of("iterated_matrix", 20, opponent, memory=0, episodes=300)
        method = component("inference", "fpq_learning", belief=belief, epsilon=1.0, forget=1.0)
        results[name] = play(game, method)
    assert (results["state"][1].forecast - 0.5).abs().max() < 0.15
    state, posterior = results["chains"]
    # the weights of the other two decrease like 1/t
    did = posterior.forecast.gather(1, state.mind.counts.a.unsqueeze(1))
    assert did.mean() > 0.85


@pytest.mark.parametrize("forget", [1.0, 0.8])
def test_sketches_without_collisions_match_dirichlet(forget):
    game = three_states(replicates=4, episodes=80)
    bloom = {"name": "bloom", "cells": 13, "hashes": 2, "bits": 8}
    first_run, posterior = play(
        game, component("inference", "fpq_learning", forget=forget, belief=bloom)
    )
    other, exact = play(game, component("inference", "fpq_learning", forget=forget))
    assert torch.equal(posterior.rewards, exact.rewards)
    assert_close(first_run.mind.q[0].values, other.mind.q[0].values)
    assert_close(posterior.forecast, exact.forecast)


def test_collisions_only_overcount():
    """The count is the smaller of two cells, indexed modulo 11 and modulo 7, compared with
    dictionaries."""
    belief = BloomCounts(name="bloom", cells=11, hashes=2, bits=8)
    prior = 0.5
    assert largest_primes(3, 30) == [29, 23, 19]
    game = game_of("iterated_matrix", 1, memory=0)
    seat = replace(game.seat(None, None), n_states=60)
    filters = belief.open(seat, prior, Streams(0))
    cells = {}
    exact = torch.full((60, 2), prior, dtype=F64)
    for s in torch.randint(0, 60, (300,), generator=generator(0)).tolist():
        b = s % 2
        history = SimpleNamespace(s=torch.tensor([s]), each=torch.tensor([[b]]), live=None)
        belief.take(filters, seat, history, 1.0)
        exact[s, b] += 1
        for prime in (11, 7):
            cells[prime, s % prime, b] = cells.get((prime, s % prime, b), prior) + 1
    for s in range(60):
        counted = [
            min(cells.get((prime, s % prime, b), prior) for prime in (11, 7)) for b in (0, 1)
        ]
        assert all(n >= float(exact[s, b]) for b, n in enumerate(counted))
        (forecast,) = belief.forecasts(filters, seat, torch.tensor([s]))
        assert forecast[0].tolist() == pytest.approx([n / sum(counted) for n in counted])


def test_unnumbered_states_are_identified_by_features():
    game = game_of("coin_game", 4, component("attacker", "fixed_policy"), size=3, episodes=20)
    bloom = {"name": "bloom", "cells": 101, "hashes": 2, "bits": 20}
    state, posterior = play(
        game, component("inference", "fpq_learning", belief=bloom), model="q_linear"
    )
    assert state.mind.counts.projection.shape[1] == 20
    assert posterior.forecast.std() > 0
    assert_close(posterior.forecast.sum(1), torch.ones(4, dtype=F64))
