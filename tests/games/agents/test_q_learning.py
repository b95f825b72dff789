import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component
from support.small.small_games import (
    draws,
    friend_or_foe,
    greedy,
    invert,
    mean_and_se,
    play,
    three_states,
)


def test_update_is_equation_4_1():
    game = three_states(replicates=4, episodes=60)
    state, posterior = play(game, component("inference", "q_learning"))
    uniforms, threats = draws(game)
    alpha, gamma, epsilon = 0.1, 0.8, 0.1
    for i in range(4):
        q = [[0.0, 0.0] for _ in range(3)]
        s = 0
        for t in range(60):
            a, b = invert(greedy(q[s], epsilon), uniforms[t][i]), threats[t][i]
            r, s_next = (
                float(game.environment.reward_a[s, a, b]),
                int(game.environment.transition[s, a, b]),
            )
            q[s][a] = (1 - alpha) * q[s][a] + alpha * (r + gamma * max(q[s_next]))  # eq. (4.1)
            s = s_next
            assert float(posterior.rewards[i, t]) == r
        torch.testing.assert_close(
            state.mind.q.values[i, :, :, 0], torch.tensor(q, dtype=torch.float64)
        )
        assert int(state.standing.s[i]) == s


def test_without_future_and_with_rate_one_the_table_holds_the_last_reward():
    game = friend_or_foe(replicates=3, episodes=40)
    state, posterior = play(game, component("inference", "q_learning", alpha=1.0, gamma=0.0))
    held = state.mind.q.values[:, 0, :, 0]
    assert set(held.flatten().tolist()) <= {50.0, -50.0}
    assert bool((held == posterior.rewards[:, -1:]).any(1).all())


def test_the_unaware_learner_is_exploited():
    """A learner that ignores him fails what those who model him reach (Gallego 4.4.1: about −20
    against 0)."""
    game = friend_or_foe(replicates=50, episodes=2000)
    _, posterior = play(game, component("inference", "q_learning"))
    mean, se = mean_and_se(game.score(posterior, None)["reward"])
    assert -25 < mean + 4 * se < -12


def test_replicates_are_independent_and_seeded():
    game = friend_or_foe(replicates=6, episodes=50)
    first, second = (play(game, component("inference", "q_learning"))[1].rewards for _ in range(2))
    assert torch.equal(first, second)
    assert len(torch.unique(first, dim=0)) == 6


def test_scores_are_the_tail_mean_and_the_total():
    game = friend_or_foe(replicates=2, episodes=50)
    _, posterior = play(game, component("inference", "q_learning"))
    scores = game.score(posterior, None)
    torch.testing.assert_close(scores["reward"], posterior.rewards[:, -10:].mean(1))
    torch.testing.assert_close(scores["total_reward"], posterior.rewards.sum(1))
    alone = friend_or_foe(replicates=1, episodes=50)
    _, posterior = play(alone, component("inference", "q_learning"))
    assert isinstance(alone.score(posterior, None)["reward"], float)
    assert set(game.draw(play(game, component("inference", "q_learning"))[1], None)) == {"rewards"}


@pytest.mark.parametrize(
    "change",
    [{"alpha": 0.0}, {"gamma": 1.0}, {"epsilon": 1.5}, {"temperature": 0.0}, {"policy": "greedy"}],
)
def test_out_of_range_is_refused(change):
    with pytest.raises(ValidationError):
        component("inference", "q_learning", **change)


def test_a_game_without_an_adversary_says_what_to_add():
    game = friend_or_foe(replicates=2, episodes=5)
    game.attacker = None
    with pytest.raises(ValueError, match="add attacker=exponential_smoother"):
        play(game, component("inference", "q_learning"))
