"""Ends, truncations, deaths and episodes without moves in a user's parallel environment, from the
players' point of view."""

import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.small.small_games import have_equal_states, play
from torch.testing import assert_close

from components.games import game_scores as games
from components.games.agents.policy_gradient import PolicyGradient

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
LEARNERS = {
    "q_learning": {},
    "fpq_learning": {},
    "level_k": {"level": 2},
    "level_k of level 3": {"level": 3},
    "model_averaging": {},
    "minimax_q": {},
    "friend_or_foe_q": {"opponents": "foe"},
    "nash_q": {},
    "policy_gradient by state": {"baseline": "by_state"},
    "policy_gradient": {},
}


def learner(name, **keys):
    return component("inference", name.split()[0], **LEARNERS.get(name, {}) | keys)


def explorer(name, **keys):
    """Player with uniform actions and a learning rate of 1."""
    modelled = {"alpha_opponent": 1.0} if name.startswith(("level_k", "model_averaging")) else {}
    return learner(name, epsilon=1.0, alpha=1.0, **modelled, **keys)


def game(env, inference, replicates=2, opponent=None, episodes=20, **keys):
    """The state and the posterior after all episodes; unless an opponent is given, it learns like
    the decision maker."""
    problem, rng = load(
        "pettingzoo", replicates=replicates, episodes=episodes, env=f"parallel_envs:{env}", **keys
    )
    problem.attacker = opponent or component("attacker", "learner", agent=inference)
    model = component("model", "q_linear").build(problem, rng)
    return play(problem, inference, model=model)


def opponent_of(state):
    return state.standing.adversary.mind


@pytest.mark.parametrize("name", LEARNERS)
def test_truncation_equals_the_cut_at_the_horizon(name):
    """Both games are identical bit by bit for the decision maker and the opponent; a game that ends
    there differs."""
    inference = learner(name)
    by_environment, _ = game("Fork", inference, kwargs={"limit": 2})
    by_horizon, _ = game("Fork", inference, kwargs={"limit": None}, horizon=2)
    assert have_equal_states(by_environment, by_horizon)
    assert have_equal_states(opponent_of(by_environment), opponent_of(by_horizon))


def test_action_values_of_a_truncated_fork_are_exact():
    """Q(go) = γ · 10 = 8 and Q(stay) = 1 + γ Q(go) = 7.4."""
    state, _ = game("Fork", explorer("q_learning"), episodes=150, kwargs={"limit": 2})
    at_fork, gone = state.mind.q[0].values[..., 0].mean(0)  # [places, actions]
    assert_close(at_fork, double([7.4, 8.0]), rtol=0, atol=0.05)
    assert_close(gone, double([10.0, 10.0]), rtol=0, atol=0.05)


@pytest.mark.parametrize("name", [name for name in LEARNERS if "gradient" not in name])
def test_game_that_always_pays_1_is_worth_5(name):
    """1/(1 − γ) at γ = 0.8 for both players, though each episode has two moves."""
    inference = explorer(name)
    state, posterior = game("Plain", inference, episodes=60, kwargs={"limit": 2})
    worth = torch.full((2,), 5.0, dtype=F64)
    assert_close(posterior.values.amax(1), worth, rtol=0, atol=0.2)
    s = state.standing.s
    assert_close(inference.think(opponent_of(state), s, 0).amax(1), worth, rtol=0, atol=0.2)


def test_truncation_without_bootstrapping_is_an_end():
    _, posterior = game(
        "Plain", explorer("q_learning", bootstrap_at_horizon=False), kwargs={"limit": 1}
    )
    assert posterior.values.tolist() == [[1.0, 1.0]] * 2


class Noted(PolicyGradient):
    """Record each move, and the value of its next state before learning from it."""

    def learn(self, mind, seen, episode):
        NOTED.append((seen, self._value(mind, seen.s_next).clone(), mind.mean.clone()))
        super().learn(mind, seen, episode)


NOTED = []


@pytest.mark.parametrize("baseline", ["none", "mean"])
@pytest.mark.parametrize("keys", [{"kwargs": {"limit": 3}}, {"horizon": 3}])
def test_value_at_truncation_follows_its_rewards(baseline, keys):
    """θ ← θ + lr Σ_i ∇ log π_i (Σ_{t ≥ i} γ^t (r_t − r̄) + γ³ v(s₃))."""
    inference = component(
        "inference", "policy_gradient", baseline=baseline, gamma=0.8, baseline_rate=0.5
    )
    NOTED.clear()
    idle = component("attacker", "fixed_policy", plays="random")
    state, _ = game("Fork", Noted(**dict(inference)), opponent=idle, episodes=6, **keys)
    for replicate in range(2):
        theta = torch.zeros(2, 2, dtype=F64)  # [places, actions]
        for first in range(0, len(NOTED), 3):
            moves = NOTED[first : first + 3]
            step = torch.zeros_like(theta)
            assert [bool(observation.truncated[replicate]) for observation, _, _ in moves] == [
                False,
                False,
                True,
            ]
            returns = 0.8**3 * float(moves[2][1][replicate])
            for t, (observation, _, mean) in reversed(list(enumerate(moves))):
                returns += 0.8**t * float(observation.r_a[replicate] - mean[replicate])
                place = int(observation.s[replicate, 4])
                a = int(observation.a[replicate])
                step[place] += returns * (torch.eye(2, dtype=F64)[a] - theta[place].softmax(-1))
            theta += inference.lr * step
        assert_close(state.mind.theta[replicate], theta, rtol=1e-9, atol=1e-12)
    assert max(float(value.abs().max()) for _, value, _ in NOTED) > 0.5


# deaths
def test_opponent_that_leaves_learns_zero_afterwards():
    """b is paid 2 once and is worth 2, not 2/(1 − γ); a plays on, is truncated, and is worth 5."""
    inference = explorer("q_learning")
    state, posterior = game("OpponentLeaves", inference, kwargs={"limit": 3})
    assert posterior.opponent_rewards[:, :, -1].tolist() == [[2.0] * 2, [2.5] * 2]
    assert_close(posterior.values, torch.full_like(posterior.values, 5.0), rtol=0, atol=0.1)
    assert inference.think(opponent_of(state), state.standing.s, 0).tolist() == [[2.0, 2.0]] * 2


@pytest.mark.parametrize("name", ["level_k", "nash_q"])
def test_modelled_opponent_leaves_too(name):
    state, _ = game("OpponentLeaves", explorer(name), kwargs={"limit": 3})
    modelled = state.mind.q[0] if name == "level_k" else state.mind.opponent_values
    assert modelled.q(state.standing.s).unique().tolist() == [2.0]


def test_opponents_are_truncated_when_the_decision_maker_ends():
    inference = explorer("q_learning")
    state, posterior = game("AgentLeaves", inference, episodes=60)
    assert posterior.values.tolist() == [[2.0, 2.0]] * 2
    worth = inference.think(opponent_of(state), state.standing.s, 0)
    assert_close(worth, torch.full_like(worth, 5.0), rtol=0, atol=0.1)


def test_moves_after_an_opponent_left_are_not_counted():
    first = component("attacker", "fixed_policy", plays=[1.0, 0.0])
    _, posterior = game(
        "OpponentLeaves", learner("q_learning"), opponent=first, kwargs={"limit": 4}
    )
    assert posterior.firsts[1].unique().tolist() == [1.0]


# episodes without moves
@pytest.mark.parametrize("name", LEARNERS)
def test_episode_over_at_its_start_is_worth_0(name):
    follows_gradient = "gradient" in name
    _, posterior = game("Short", learner(name) if follows_gradient else explorer(name), episodes=50)
    assert posterior.rewards.unique().tolist() == [0.0, 1.0]
    assert 0.3 < posterior.rewards.mean() < 0.7
    assert torch.equal(posterior.firsts.isnan().any(0), posterior.rewards == 0)
    if not follows_gradient:
        assert_close(posterior.values, torch.ones_like(posterior.values))
    scores = games.scores(posterior.rewards, 0.5, 10) | games.frequencies(posterior.firsts, 0.5)
    assert all(score.isfinite().all() for score in scores.values())


def test_shares_of_no_moves_are_not_scores():
    nothing = torch.full((2, 3, 4), torch.nan)
    assert games.frequencies(nothing, 0.5) == {}
    some = torch.tensor([[[0.0, 1.0, torch.nan]], [[torch.nan, 0.5, torch.nan]]])
    assert {name: share.tolist() for name, share in games.frequencies(some, 1.0).items()} == {
        "first_action": [0.5],
        "first_action_opponents": [0.5],
    }


def test_overflowing_action_values_are_an_error():
    """Observations of hundreds of large numbers with too high a learning rate."""
    from components.errors import NumericalError

    idle = component("attacker", "fixed_policy", plays="random")
    with pytest.raises(NumericalError, match=r"inference: .*; lower inference.alpha"):
        game("Loud", learner("q_learning"), opponent=idle, episodes=60, kwargs={"limit": 5})
    with pytest.raises(
        NumericalError,
        match=r"attacker.agent: .*; lower attacker.agent.alpha",
    ):
        game(
            "Loud",
            learner("q_learning", alpha=1e-9),
            opponent=component("attacker", "learner", agent=learner("q_learning")),
            episodes=60,
            kwargs={"limit": 5},
        )
