"""Gallego's Table 4.1, reproduced with its original keys."""

import pytest
from support.runs.configured import component
from support.small.small_games import game_of, play


def play_rewards(epsilon, episodes, replicates, tensors=False):
    """α₂ = 0.5, α₁ = 0.25: rewards [R, t]."""
    keys = {"horizon": 100, "counts": "last_move", "learns_from": "ends"}
    smoother = component("attacker", "exponential_smoother", beta=0.75)
    game = game_of("friend_or_foe_grid", replicates, smoother, episodes=episodes, **keys)
    method = component(
        "inference",
        "level_k",
        alpha=0.5,
        alpha_opponent=0.25,
        forecast="sampled",
        ties="first",
        epsilon_opponent=epsilon,
        epsilon={"start": epsilon, "factor": 0.995, "every": 10},
    )
    return play(game, method, tensors=tensors)[1].rewards


def test_episode_value_is_its_last_move():
    rewards = play_rewards(0.5, 30, 10, tensors=True)
    assert {float(r) for r in rewards.unique()} <= {49.0, -51.0, -1.0}
    assert (rewards.std(1) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "printed", "sd"), [(0.5, 15.95, 47.04), (0.1, 43.06, 23.64), (0.01, 48.41, 7.68)]
)
def test_rewards_match_published_table(epsilon, printed, sd):
    rewards = play_rewards(epsilon, 15_000, 20)[:, -3000:]
    of_print = sd / 15_000**0.5  # 3,000 episodes of five seeds
    ours = float(rewards.mean(1).std() / 20**0.5)
    assert abs(float(rewards.mean()) - printed) < 3 * (of_print**2 + ours**2) ** 0.5
    assert rewards.std() == pytest.approx(sd, rel=0.1)
