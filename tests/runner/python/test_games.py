"""Games as parallel environments pass PettingZoo's tests and are unchanged when converted back."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
from support.runs.configured import component, generator, load
from support.small.small_games import play

from components import registry
from runner.errors import ConfigError

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
from pettingzoo.test import parallel_api_test, parallel_seed_test

from runner.python.games import parallel_env

GAMES: dict[str, dict] = {
    "friend_or_foe": {"episodes": 12},
    "friend_or_foe_grid": {"horizon": 9},
    "iterated_matrix": {"episodes": 12, "payoffs": "chicken", "P": 0.0, "S": 1.0},
    "blotto": {"episodes": 12},
    "coin_game": {"size": 3, "start": "random"},
    "data_sharing": {"episodes": 12, "incentive": 0.5, "incentive_until": 6},
}


def test_every_game_is_played():
    games = {
        name for name in registry.names("dataset") if registry.get("dataset", name).kind == "game"
    }
    assert games - {"pettingzoo"} == set(GAMES)


@pytest.mark.parametrize("name", GAMES)
def test_pettingzoo_checks_pass(name, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        parallel_api_test(parallel_env(name, **GAMES[name]), num_cycles=60)
        parallel_seed_test(lambda: parallel_env(name, **GAMES[name]), num_cycles=60)
    assert "Passed" in capsys.readouterr().out


@pytest.mark.parametrize("name", GAMES)
def test_exported_game_equals_the_native_one(name):
    """Rewards, states and ends of three replicates, each a native game from the same seed."""
    native, _ = load(name, **GAMES[name])
    world = native.environment
    horizon = parallel_env(name, **GAMES[name]).moves
    kwargs = {"game": name, **GAMES[name]}
    read, _ = load(
        "pettingzoo",
        replicates=3,
        env="runner.python.games:parallel_env",
        kwargs=kwargs,
        horizon=horizon,
    )
    other = read.environment
    assert (other.n_actions, other.n_threats) == (world.n_actions, world.n_threats)
    g = generator(7)
    s = other.reset(3, g)
    streams = [generator(int(seed)) for seed in s[:, 0].tolist()]
    resets = [world.reset(1, stream) for stream in streams]
    live = [True] * 3
    for move in range(horizon):
        rules = world.at(move) if name == "data_sharing" else world
        a = torch.randint(0, world.n_actions, (3,), generator=g)
        b = torch.stack([torch.randint(0, n, (3,), generator=g) for n in world.n_threats], 1)
        outcome = other.step(s, a, b, g)
        for i in itertools.compress(range(3), live):
            mine = rules.step(resets[i], a[i : i + 1], b[i : i + 1], streams[i])
            assert float(outcome.r_a[i]) == float(mine.r_a)
            assert outcome.r_b[i].tolist() == mine.r_b[0].tolist()
            assert torch.equal(other.features(outcome.s_next)[i], world.features(mine.s_next)[0])
            ends = mine.done is not None and bool(mine.done)
            assert bool(outcome.done[i]) is ends
            resets[i] = mine.s_next
            live[i] = not ends
        s = outcome.s_next


def test_learning_through_pettingzoo_equals_native_learning():
    """With a fixed start the two runs have the same numbers and draws in all episodes."""
    keys = {"size": 3, "moves": 6}
    earned = []
    for name, given in (
        ("coin_game", keys),
        (
            "pettingzoo",
            {"env": "runner.python.games", "kwargs": {"game": "coin_game", **keys}, "horizon": 6},
        ),
    ):
        game, _ = load(name, replicates=4, episodes=25, **given)
        game.attacker = component("attacker", "exponential_smoother")
        _, posterior = play(game, component("inference", "level_k"), model="q_linear", tensors=True)
        earned.append(posterior.rewards)
    assert earned[0].unique().numel() > 1
    assert torch.equal(*earned)


def test_ends_and_truncations_are_told_apart():
    env = parallel_env("friend_or_foe_grid", horizon=4)
    # down is a wall; up, and left to a target
    for path, terminated in (([2, 2, 2, 2], False), ([0, 0, 0, 3], True)):
        env.reset(seed=0)
        for a in path:
            _, _, ends, cuts, _ = env.step({"decision_maker": a, "opponent_1": 0})
        assert set(ends.values()) == {terminated}
        assert set(cuts.values()) == {not terminated}
        assert env.agents == []
    with pytest.raises(ValueError, match="call reset"):
        env.step({})


def test_equal_seeds_repeat_and_a_missing_seed_continues():
    env = parallel_env("coin_game", size=3, start="random")

    def first(seed=None):
        return env.reset(seed=seed)[0]["opponent_1"].tolist()

    began = [first(1), first(), first()]
    assert [first(1), first(), first()] == began
    assert began[0] != began[1]


def test_invalid_requests_are_refused():
    with pytest.raises(ConfigError, match=r"coin_gam: .* did you mean coin_game\?"):
        parallel_env("coin_gam")
    with pytest.raises(ConfigError, match="size"):
        parallel_env("coin_game", size=1)
    env = parallel_env("coin_game", size=3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"opponent_1: 4 .* Discrete"):
        env.step({"decision_maker": 0, "opponent_1": 4})
