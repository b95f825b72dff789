"""Mixtures of Markov chains and counting Bloom filters: against a plain twin, and against one
Dirichlet for each state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.runs.configured import component, generator
from support.small.small_games import play, three_states

from components.contracts.roles import Setting
from components.games.beliefs.bloom_counts import BloomCounts, largest_primes
from runner.execution.rng import Streams

CHAINS = {"name": "markov_chains", "weights": [1.0, 2.0, 0.5], "learn": True}


def _setting(replicates):
    return Setting(Path(), torch.device("cpu"), torch.float64, replicates)


def share(counts):
    return [c / sum(counts) for c in counts]


@pytest.mark.parametrize("learn", [True, False])
def test_the_mixture_is_that_of_section_4_3_1(learn):
    game, moves = three_states(replicates=3, episodes=40), []
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
        hers, his, where = ([[1.0] * 3 for _ in range(n)] for n in (2, 3, 3))
        w, last = list(CHAINS["weights"]), None
        for s, a, b, found in moves:
            state_alone = share(where[s[i]])
            each = (
                [share(hers[last[0]]), share(his[last[1]]), state_alone]
                if last
                else [state_alone] * 3
            )
            p = [sum(w[k] * each[k][j] for k in range(3)) / sum(w) for j in range(3)]
            assert found[i].tolist() == pytest.approx(p)
            if last and learn:
                made = [w[k] * each[k][b[i]] for k in range(3)]
                w = [w[k] + made[k] / sum(made) for k in range(3)]
            for counts in [where[s[i]], *([hers[last[0]], his[last[1]]] if last else [])]:
                counts[:] = [0.9 * c + (j == b[i]) for j, c in enumerate(counts)]
            last = a[i], b[i]
        assert state.mind.counts.weights[i, 0].tolist() == pytest.approx(w)


def test_an_opponent_who_answers_her_last_action_is_found_out():
    """Tit for tat in one state: by state half and half is expected, by chains what she did."""
    found = {}
    for name, belief in {"state": "by_state", "chains": CHAINS}.items():
        game = three_states(replicates=20, episodes=300)
        pays = component("dataset", "iterated_matrix", memory=0).load(Streams(0), _setting(20))
        pays.attacker, pays.episodes = component("attacker", "tit_for_tat"), game.episodes
        method = component("inference", "fpq_learning", belief=belief, epsilon=1.0, forget=1.0)
        state, posterior = play(pays, method)
        did = state.mind.counts.a if name == "chains" else None
        found[name] = posterior.forecast, did
    assert float((found["state"][0] - 0.5).abs().max()) < 0.15
    forecast, did = found["chains"]
    # the weights of the other two fade like 1/t
    assert float(forecast.gather(1, did.unsqueeze(1)).mean()) > 0.85


@pytest.mark.parametrize("forget", [1.0, 0.8])
def test_without_collisions_filters_are_one_dirichlet_a_state(forget):
    game = three_states(replicates=4, episodes=80)
    bloom = {"name": "bloom", "cells": 13, "hashes": 2, "bits": 8}
    one, posterior = play(game, component("inference", "fpq_learning", forget=forget, belief=bloom))
    other, exact = play(game, component("inference", "fpq_learning", forget=forget))
    assert torch.equal(posterior.rewards, exact.rewards)
    torch.testing.assert_close(one.mind.q.values, other.mind.q.values)
    torch.testing.assert_close(posterior.forecast, exact.forecast)


def test_collisions_count_too_much_and_never_too_little():
    """The least of two cells, numbers modulo 11 and modulo 7, counted in dictionaries beside."""
    belief, prior = BloomCounts(name="bloom", cells=11, hashes=2, bits=8), 0.5
    assert largest_primes(3, 30) == [29, 23, 19]
    game = component("dataset", "iterated_matrix", memory=0).load(Streams(0), _setting(1))
    seat = replace(game.seat(None, None), n_states=60)
    filters = belief.open(seat, prior, Streams(0))
    cells, exact = {}, torch.full((60, 2), prior, dtype=torch.float64)
    for s in torch.randint(0, 60, (300,), generator=generator(0)).tolist():
        b = s % 2
        belief.take(filters, seat, _Seen(torch.tensor([s]), torch.tensor([[b]])), 1.0)
        exact[s, b] += 1
        for prime in (11, 7):
            cells[prime, s % prime, b] = cells.get((prime, s % prime, b), prior) + 1
    for s in range(60):
        counted = [
            min(cells.get((prime, s % prime, b), prior) for prime in (11, 7)) for b in (0, 1)
        ]
        assert all(n >= float(exact[s, b]) for b, n in enumerate(counted))
        (found,) = belief.forecasts(filters, seat, torch.tensor([s]))
        assert found[0].tolist() == pytest.approx(share(counted))


class _Seen:
    live = None

    def __init__(self, s, each):
        self.s, self.each = s, each


def test_states_without_numbers_are_told_apart_by_their_features():
    game = component("dataset", "coin_game", size=3, episodes=20).load(Streams(0), _setting(4))
    game.attacker = component("attacker", "fixed_policy")
    model = component("model", "q_linear").build(game, Streams(0))
    bloom = {"name": "bloom", "cells": 101, "hashes": 2, "bits": 20}
    state, posterior = play(game, component("inference", "fpq_learning", belief=bloom), model=model)
    assert state.mind.counts.projection.shape[1] == 20
    assert float(posterior.forecast.std()) > 0
    torch.testing.assert_close(posterior.forecast.sum(1), torch.ones(4, dtype=torch.float64))
