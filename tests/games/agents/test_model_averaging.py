"""A literal version of algorithm 4.2, and the agent's beliefs about its opponent."""

import numpy as np
import pytest
import torch
from support.runs.configured import component
from support.small.small_games import (
    assert_near,
    friend_or_foe,
    game_of,
    mean_and_se,
    play,
    three_states,
)

from components.errors import ConfigMismatchError
from components.games.agents.model_averaging import ModelAveraging


def averaging(**changes):
    return component("inference", "model_averaging", **changes)


def duel(level, replicates, episodes, **changes):
    agent = component("inference", "level_k", level=level)
    game = friend_or_foe(replicates, episodes)
    game.attacker = component("attacker", "learner", agent=agent)
    return play(game, averaging(**changes))


def play_noted(game, method):
    """Return the end of a game, and the forecasts and actions of each round."""
    records = []

    class Noted(ModelAveraging):
        def predict_actions(self, mind, s, episode):
            records.append([super().predict_actions(mind, s, episode)])
            return records[-1][0]

        def learn(self, mind, move, episode):
            super().learn(mind, move, episode)
            records[-1].append(move.b)

    state, posterior = play(game, Noted(**dict(method)))
    return state, posterior, records


@pytest.mark.parametrize(
    ("counted", "prior"),
    [("sole", [1.0, 1.0]), ("right", [3.0, 1.0]), ("right_or_all", [3.0, 1.0])],
)
def test_beliefs_are_counts_of_correct_models(counted, prior):
    """Algorithm 4.2 as published counts every correct model; ``sole`` counts a model if it is the
    only correct one, ``right_or_all`` counts all models if none is correct."""
    method = averaging(counted=counted, prior_of_models=prior)
    state, posterior, records = play_noted(three_states(4, 60), method)
    for r in range(4):
        counts = np.array(prior)
        for guesses, b in records:
            right = guesses[r].numpy() == int(b[r])
            if counted == "right_or_all" and not right.any():
                right[:] = True
            if counted != "sole" or right.sum() == 1:
                counts += right
        assert state.mind.right[r].tolist() == counts.tolist()
        belief = float(posterior.beliefs["belief/level_1"][r])
        assert belief == pytest.approx(counts[0] / counts.sum())


def test_predictions_are_draws_from_each_model():
    state, _ = play(three_states(2000, 3), averaging())
    s = state.standing.s
    probs = averaging().predict_actions(state.mind, s, 2)
    for i, (thinker, held) in enumerate(
        zip(averaging()._build_thinkers(), state.mind.types, strict=True)
    ):
        p = thinker.forecast_opponent(held, s, 2)
        shares = torch.nn.functional.one_hot(probs[:, i], 3).double() - p
        assert (shares.mean(0).abs() < 4 * shares.std(0) / 2000**0.5 + 1e-9).all()


def test_values_are_averages_over_types():
    state, posterior = play(three_states(3, 30), averaging())
    s = state.standing.s
    thinkers = zip(averaging()._build_thinkers(), state.mind.types, strict=True)
    each = torch.stack([thinker.think(mind, s, 29) for thinker, mind in thinkers], 1)
    assert_near(
        posterior.values, torch.einsum("ri,ria->ra", ModelAveraging.belief(state.mind), each)
    )
    assert_near(posterior.forecast.sum(-1), torch.ones(3))


def test_level_1_opponent_is_recognised():
    _, posterior = duel(1, 40, 800)
    mean, se = mean_and_se(posterior.beliefs["belief/level_1"])
    assert mean > 0.8 + 4 * se
    assert mean_and_se(posterior.rewards[:, -300:].mean(1))[0] > 20


def test_several_opponents_are_refused():
    with pytest.raises(ConfigMismatchError, match=r"^inference=.* a single opponent, .* has 2"):
        play(game_of("blotto", 2), averaging())
