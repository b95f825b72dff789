"""Algorithm 4.2, literally, and whom she takes her opponent for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.runs.configured import component
from support.small.small_games import friend_or_foe, mean_and_se, play, three_states

from components.contracts.roles import Setting
from components.errors import ConfigMismatchError
from components.games.agents.model_averaging import ModelAveraging
from runner.execution.rng import Streams


def averaging(**changes) -> ModelAveraging:
    return component("inference", "model_averaging", **changes)


def duel(level, replicates, episodes, **changes):
    game = friend_or_foe(replicates, episodes)
    game.attacker = component(
        "attacker", "learner", agent=component("inference", "level_k", level=level)
    )
    return play(game, averaging(**changes))


def play_noted(game, method):
    """The end of a game, and in each round what was guessed and what was played."""
    seen = []

    class Noted(ModelAveraging):
        def predict_actions(self, mind, s, episode):
            seen.append([super().predict_actions(mind, s, episode)])
            return seen[-1][0]

        def learn(self, mind, move, episode):
            super().learn(mind, move, episode)
            seen[-1].append(move.b)

    state, posterior = play(game, Noted(**dict(method)))
    return state, posterior, seen


def test_beliefs_are_counts_of_who_alone_was_right():
    state, posterior, seen = play_noted(three_states(4, 60), averaging())
    for r in range(4):
        counts = [1.0, 1.0]
        for guesses, b in seen:
            right = [int(guesses[r, i]) == int(b[r]) for i in range(2)]
            if sum(right) == 1:
                counts[right.index(True)] += 1
        assert state.mind.right[r].tolist() == counts
        assert float(posterior.beliefs["belief/level_1"][r]) == pytest.approx(
            counts[0] / sum(counts)
        )


@pytest.mark.parametrize("counted", ["right", "right_or_all"])
def test_algorithm_4_2_as_printed_counts_every_model_that_was_right(counted):
    """From p(M_i) ∝ (3, 1); where none was right nothing is counted, or all are."""
    method = averaging(counted=counted, prior_of_models=[3.0, 1.0])
    state, _, seen = play_noted(three_states(4, 60), method)
    for r in range(4):
        counts = [3.0, 1.0]
        for guesses, b in seen:
            right = [int(guesses[r, i]) == int(b[r]) for i in range(2)]
            if counted == "right_or_all" and not any(right):
                right = [True, True]
            counts = [n + hit for n, hit in zip(counts, right, strict=True)]
        assert state.mind.right[r].tolist() == counts
    assert "counted=" in str(method.unsupported_option())


def test_priors_of_another_length_are_refused():
    with pytest.raises(ValueError, match="3 numbers for 2 levels"):
        averaging(prior_of_models=[1.0, 1.0, 1.0])
    with pytest.raises(ConfigMismatchError, match="gives 2 pseudo-counts"):
        play(three_states(1, 1), component("inference", "fpq_learning", prior=[1.0, 1.0]))


def test_predictions_are_draws_from_each_model():
    state, _ = play(three_states(2000, 3), averaging())
    s = state.standing.s
    found = averaging().predict_actions(state.mind, s, 2)
    for i, (thinker, held) in enumerate(
        zip(averaging()._build_thinkers(), state.mind.types, strict=True)
    ):
        p = thinker.forecast_opponent(held, s, 2)
        shares = torch.nn.functional.one_hot(found[:, i], 3).double() - p
        assert bool((shares.mean(0).abs() < 4 * shares.std(0) / 2000**0.5 + 1e-9).all())


def test_values_are_averages_of_what_each_type_is_worth():
    state, posterior = play(three_states(3, 30), averaging())
    s = state.standing.s
    p = ModelAveraging.belief(state.mind)
    each = [
        t.think(m, s, 29)
        for t, m in zip(averaging()._build_thinkers(), state.mind.types, strict=True)
    ]
    for r in range(3):
        exact = [sum(float(p[r, i] * each[i][r, a]) for i in range(2)) for a in range(2)]
        assert posterior.values[r].tolist() == pytest.approx(exact)
    torch.testing.assert_close(posterior.forecast.sum(-1), torch.ones(3, dtype=torch.float64))


def test_an_opponent_of_level_1_is_recognised():
    _, posterior = duel(1, 40, 800)
    mean, se = mean_and_se(posterior.beliefs["belief/level_1"])
    assert mean > 0.8 + 4 * se
    assert mean_and_se(posterior.rewards[:, -300:].mean(1))[0] > 20


def test_several_opponents_are_too_many():
    loaded = component("dataset", "blotto").load(
        Streams(0), Setting(Path(), torch.device("cpu"), torch.float64, 2)
    )
    loaded.attacker = component("attacker", "exponential_smoother")
    with pytest.raises(ConfigMismatchError, match="one opponent thinks, here there are 2"):
        play(loaded, averaging())
