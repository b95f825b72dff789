"""The spatial friend-or-foe game compared with its rules in plain Python, and level-k tables with
value iteration."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load
from support.small.small_games import Stationary, play
from torch.nn.functional import one_hot

from components.games.agents.decision_maker import DecisionMaker
from components.games.environments.episode import Episode
from runner.execution.rng import Streams


class Room:
    """Gallego 4.4.1 in plain Python: one replicate, one move at a time."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.row = 3
        self.column = 1
        self.moves = 0

    def move(self, a, hidden):
        """The agent's reward, the opponent's, and the target that the agent stepped on."""
        self.row = {"up": max(self.row - 1, 0), "down": min(self.row + 1, 3)}.get(a, self.row)
        self.column = {"left": max(self.column - 1, 0), "right": min(self.column + 1, 2)}.get(
            a, self.column
        )
        self.moves += 1
        target = {(0, 0): "left", (0, 2): "right"}.get((self.row, self.column))
        gain = 0.0 if target is None else 50.0 if target == hidden else -50.0
        return gain - 1.0, -gain, target


def walk(environment, steps=3000, replicates=4):
    """Assert that the environment and its rooms agree at each move."""
    g = generator(0)
    rooms = [Room() for _ in range(replicates)]
    s = environment.reset(replicates, g)
    for _ in range(steps):
        a = torch.randint(0, 4, (replicates,), generator=g)
        b = torch.randint(0, 2, (replicates, 1), generator=g)
        shown, observation = environment.observe(s, a)
        r_a, r_b, s, done, *_ = environment.step(s, a, b, g)
        for i, room in enumerate(rooms):
            word = ("up", "right", "down", "left")[a[i]]
            reward, opponent_reward, target = room.move(word, ("left", "right")[b[i, 0]])
            assert (float(r_a[i]), float(r_b[i, 0])) == (reward, opponent_reward)
            assert int(s[i]) == 3 * room.row + room.column
            assert shown[i].tolist() == [float(target == side) for side in ("left", "right")]
            assert bool(observation[i]) == bool(done[i]) == (target is not None)
            if target or room.moves == 50:
                room.reset()
                s[i] = 10


def grid(episodes=5, replicates=4, seed=0, **keys):
    problem, _ = load("friend_or_foe_grid", seed, replicates, episodes=episodes, **keys)
    problem.attacker = component("attacker", "exponential_smoother")
    return problem


def test_environment_follows_its_rules():
    walk(grid().environment)


def move_through_the_wall(rules):
    rules.transition[0, 0] = 9
    rules.transition[5, 1] = 3


def pay_one_more(rules):
    rules.reward_a[3, 0, 1] += 1


def show_the_other_target(rules):
    rules.touches[3, 0] = rules.touches[3, 0].flip(0)


@pytest.mark.parametrize("broken", [move_through_the_wall, pay_one_more, show_the_other_target])
def test_broken_environment_is_detected(broken):
    environment = grid().environment
    broken(environment)
    with pytest.raises(AssertionError):
        walk(environment)


def test_episode_ends_at_target_or_after_fifty_moves():
    """Up three times and left: 50 − 4 at the good reward; only moves into a wall: −50."""
    for moves, reward, count in (("uuul", 46.0, 4), ("uuur", -54.0, 4), ("d" * 60, -50.0, 50)):
        game = grid(episodes=1, replicates=3)
        game.attacker = Stationary(p=[1.0, 0.0])
        done = []

        def choose(s, moves=moves, done=done):
            direction = torch.tensor("urdl".index(moves[len(done)]))
            return one_hot(direction, 4).double().expand(3, 4)

        standing = game.opening(Streams(0))
        total = Episode(game, 0).play(standing, Streams(0), choose, done.append)["reward"]
        assert total.tolist() == [reward] * 3
        assert len(done) == count
        assert torch.equal(standing.rewards_so_far, total[:, None])
        assert standing.s.tolist() == [10, 10, 10]  # back at the start


def test_finished_replicates_are_unchanged():
    """Replicate 0 walks directly to a target, and replicate 1 does not: afterwards replicate 0
    learns and earns nothing, and its opponent observes nothing."""
    game = grid(episodes=1, replicates=2)
    rng = Streams(0)
    states = []
    standing = game.opening(rng)

    def choose(s):
        p = torch.zeros(2, 4, dtype=F64)
        p[0, 0 if len(states) < 3 else 3] = 1
        p[1, 2 if len(states) < 6 else 0 if len(states) < 9 else 1] = 1
        return p

    memories = []

    def learn(move):
        states.append(move)
        memories.append(standing.adversary.clone())

    total = Episode(game, 0).play(standing, rng, choose, learn)["reward"]
    assert len(states) == 10
    assert all(move.live is None for move in states[:1])
    assert [move.live.tolist() for move in states[1:4]] == [[True, True]] * 3
    assert [move.live.tolist() for move in states[4:]] == [[False, True]] * 6
    assert torch.equal(states[5].rate(0.3), double([0.0, 0.3]))
    assert abs(float(total[0])) in (46.0, 54.0)
    assert all(torch.equal(memory[0], memories[3][0]) for memory in memories[3:])
    assert not torch.equal(memories[9][1], memories[8][1])


def values(environment, p, gamma, through_ends=False):
    """Q(s, a, b) = r(s, a, b) + γ max_a' Σ_b' p(b') Q(s', a', b'), with targets as terminal states,
    by value iteration."""
    q = torch.zeros(12, 4, 2, dtype=F64)
    forecast = double([p, 1 - p])
    for _ in range(500):
        value = (q * forecast).sum(-1).amax(-1)  # [S]
        if not through_ends:
            value = torch.where(environment.ends, 0.0, value)
        q = environment.reward_a + gamma * value[environment.transition]
    return q


def explore(inference, p, episodes=150, horizon=50, **keys):
    """Table with initial value 10 of a random walk from the middle of the room, against an opponent
    that hides the reward on the left with probability p; with α = 1 every visit is an exact
    backup."""
    game = grid(episodes, replicates=1, horizon=horizon)
    game.environment = replace(game.environment, start=4)
    game.attacker = Stationary(p=[p, 1 - p])
    component_ = component("inference", inference, alpha=1.0, epsilon=1.0, gamma=0.5, **keys)
    table = component("model", "q_table", initial=10.0).build(game, Streams(0))
    return game, *play(game, component_, model=table)


@pytest.mark.parametrize(("episodes", "horizon"), [(150, 50), (500, 10)])
def test_level_k_matches_value_iteration(episodes, horizon):
    """The opponent hides at random, as the agent assumes (ε = 1 in its model). The number of moves
    does not matter, because the horizon is not terminal; targets are terminal, and their table
    entries are unused."""
    game, state, posterior = explore("level_k", 0.5, episodes, horizon, epsilon_opponent=1.0)
    walked = ~game.environment.ends
    exact = values(game.environment, 0.5, 0.5)
    torch.testing.assert_close(state.mind.q[-1].values[0, walked], exact[walked], atol=1e-4, rtol=0)
    assert (exact - values(game.environment, 0.5, 0.5, through_ends=True))[walked].abs().max() > 0.3
    assert torch.equal(posterior.forecast, torch.full((1, 2), 0.5, dtype=F64))


def test_bootstrapping_through_the_end_is_detected(monkeypatch):
    monkeypatch.setattr(DecisionMaker, "ahead", lambda self, seen, value: self.gamma * value)
    game, state, _ = explore("level_k", 0.5, 40, epsilon_opponent=1.0)
    walked = ~game.environment.ends
    assert (
        state.mind.q[-1].values[0, walked] - values(game.environment, 0.5, 0.5)[walked]
    ).abs().max() > 1


def test_fictitious_play_learns_hiding_place():
    game, state, posterior = explore("fpq_learning", 0.9, forget=1.0)
    psi = torch.stack([posterior.values_at(torch.tensor([s])) for s in range(12)], 1)  # [R, S, A]
    # from the neighbour of the left target to it
    assert psi[0, [1, 3]].argmax(-1).tolist() == [3, 0]
    gaps = (state.mind.q[0].values[0] - values(game.environment, 0.9, 0.5))[~game.environment.ends]
    # rewards differ by 100: forecasts are frequencies of few visits
    assert gaps.abs().max() < 5


@pytest.mark.slow
def test_level_2_exploits_smoother_and_naive_learner_does_not():
    """Gallego Fig 4.7 (a): positive rewards compared with negative ones."""
    decay = {"start": 0.99, "factor": 0.9, "every": 10}
    means = {}
    for name, keys in (("level_k", {"epsilon_opponent": decay}), ("q_learning", {})):
        game = grid(episodes=900, replicates=30)
        _, posterior = play(game, component("inference", name, epsilon=decay, alpha=0.1, **keys))
        means[name] = float(game.score(posterior, None)["reward"].mean())
    assert means["level_k"] > 20 > 0 > means["q_learning"]


def test_figures_show_rewards_and_policy():
    game = grid(episodes=3, replicates=2)
    _, posterior = play(game, component("inference", "q_learning"))
    assert set(game.draw(posterior, None)) == {"rewards", "grid_policy"}
    assert game.describe()["moves in an episode"] == "at most 50"


def test_tables_have_requested_precision():
    rules = load("friend_or_foe_grid", dtype=torch.float32)[0].environment
    dtypes = {table.dtype for table in (rules.reward_a, rules.reward_b, rules.touches)}
    assert dtypes == {torch.float32}
