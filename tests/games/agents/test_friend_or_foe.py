"""Mean rewards in friend or foe against the adaptive adversary (Gallego 4.4.1)."""

from math import inf

import pytest
from support.runs.configured import component
from support.small.small_games import friend_or_foe, mean_and_se, play


@pytest.mark.parametrize(
    ("name", "keys", "replicates", "episodes", "low", "high"),
    [
        # a learner that ignores the adversary is exploited: about −20
        pytest.param("q_learning", {}, 50, 2000, -25, -12, id="Q-learning"),
        # level 1 with forgetting gets 0, and without forgetting less
        pytest.param("fpq_learning", {"forget": 0.8}, 50, 2000, -2, 3, id="FPQ"),
        pytest.param("fpq_learning", {"forget": 1.0}, 50, 2000, -inf, -4, id="counts all"),
        # around 40, close to the bound of 45 with ε = 0.1; softmax is at least as good (Figure 4.4)
        pytest.param("level_k", {}, 50, 2500, 36, 45, id="level 2"),
        pytest.param("level_k", {"policy": "softmax"}, 30, 1500, 40, inf, id="softmax"),
        # if the modelled opponent acts at random, its forecast is uniform and useless
        pytest.param("level_k", {"epsilon_opponent": 1.0}, 50, 1000, -inf, 10, id="random model"),
    ],
)
def test_mean_rewards_match_published_figures(name, keys, replicates, episodes, low, high):
    game = friend_or_foe(replicates, episodes)
    _, posterior = play(game, component("inference", name, **keys))
    mean, se = mean_and_se(game.score(posterior, None)["reward"])
    assert low < mean
    assert mean + 4 * se < high
