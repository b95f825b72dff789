"""The compiled loop compared with tensors: equal numbers without random draws, equal distributions
otherwise."""

from pathlib import Path

import pytest
import torch
from compiled_games import (
    GREEDY,
    PLAYERS,
    RANDOM_TABLES,
    SHARED,
    TABLES,
    difference,
    game,
    largest_z,
    play_game,
    player,
    start_game,
)
from support.runs.configured import component, double
from support.small.small_games import matrix_game, play_and_resume, play_episodes

from components.contracts.roles import Setting
from components.games.fast import averaging, engine, episodes, rules, thinkers
from runner.execution.rng import Streams

PAIRS = [
    ("chicken", "level 2", "level 3"),
    ("grid", "level 3", "q"),
    ("coins", "q", "level 2"),
    ("his", "level 2", "q"),
    pytest.param("coins", "level 3 first", "level 4", marks=pytest.mark.slow),
    ("hers", "defects", "fpq"),
    ("chicken", "averaging", "averaging"),
    ("coins", "level 2 draws", "level 2 draws"),
]


DEEP = ("level 3", "level 3 first", "level 4")


def cell_of(i, j, name):
    """A game for a player; slow if its compilation takes long or adds little coverage.

    Games of two actions without a smoother share the compiled loop of a number of levels."""
    number = (i + j) % len(TABLES)
    is_slow = number < SHARED if name in DEEP else j == 5 or name == "averaging of three"
    return pytest.param(*TABLES[number], name, marks=[pytest.mark.slow] if is_slow else [])


FIXED = [cell_of(i, j, name) for i, name in enumerate(PLAYERS) for j in (0, 3, 5)] + PAIRS
LAW = [(*RANDOM_TABLES[i % len(RANDOM_TABLES)], name) for i, name in enumerate(PLAYERS)]
LAW += [
    ("coins", "q softmax", "level 2 softmax"),
    ("hers", "level 2", "fpq"),
    ("chicken", "level 2 softmax", "q softmax"),
    ("chicken", "averaging", "averaging"),
]


def greedy_pair(name, opponent, agent, replicates=4, episodes=30):
    """States of tensors and of the loop without randomness: action values differ, players do not
    explore, and draws are deterministic."""
    certain = {"epsilon_opponent": 0.0, "policy_opponent": "epsilon_greedy"}
    random_players = [name for name in PLAYERS if "draws" in name or "averaging" in name]
    more = lambda its: GREEDY | (certain if its in random_players else {})  # noqa: E731
    keys = more(opponent) if opponent in PLAYERS else {}
    problems = [game(name, opponent, replicates, episodes, **keys) for _ in range(2)]
    inference = player(agent, **more(agent))
    return [play_game(problems[0], inference, tensors=True), play_game(problems[1], inference)]


@pytest.mark.parametrize(("name", "opponent", "agent"), FIXED)
def test_loop_equals_tensors_without_random_draws(name, opponent, agent):
    tensors, compiled = greedy_pair(name, opponent, agent)
    assert difference(tensors, compiled) < 1e-9
    assert tensors.standing.rewards_so_far.any()


@pytest.mark.parametrize(("name", "opponent", "agent"), LAW)
def test_loop_and_tensors_agree_in_distribution(name, opponent, agent):
    """Means over replicates of rewards, shares of actions, action values, counts and memories, in
    standard errors."""
    replicates = 1500
    states = [
        play_game(game(name, opponent, replicates, 20), player(agent), alike=True, tensors=tensors)
        for tensors in (True, False)
    ]
    assert largest_z(*states, replicates) < 4.5


def plain_loop(monkeypatch):
    """The loop as plain Python, which uses functions that a test replaces."""
    monkeypatch.setattr(engine, "play_episode", episodes.play_episode.__wrapped__)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_loop_matches_its_interpreted_source(monkeypatch):
    def run():
        return play_game(game("grid", "smoother", 3, 4), player("level 2 draws"))

    compiled = run()
    plain_loop(monkeypatch)
    assert difference(compiled, run()) < 1e-12


def count_without_forgetting(mind, i, marks, seen):
    mind.counts[i, thinkers.count_row(mind, marks), seen] += 1


def learn_from_own_rewards(move):
    return thinkers.PlayedRound(move.b, move.a, move.r, move.r_other)


def values_at_s(weights, cell, target, alpha, scratch):
    weights[scratch.before[0], cell] += alpha * target


def shared_coin_twice(rules, s, i, gains):
    COLLECT(rules, s, i, gains)
    gains[1] = gains[0]


def learn_past_ends(mind, i, move, done, cut, scratch):
    LEARN(mind, i, move, False, False, scratch)


def count_all(agent, i, b, scratch):
    agent.right[i] += 1.0


def add_unweighted(mind, i, marks, share, scratch):
    ADD(mind, i, marks, 1.0 if mind.levels.alphas.size == 2 else 0.0, scratch)


ADD = averaging.add_values
COLLECT = rules.collect_coins
GREEDY_POLICY = thinkers.set_greedy
LEARN = thinkers.learn
RESPOND = thinkers.respond
BROKEN = {
    "forgets nothing": (
        thinkers,
        "count_action",
        count_without_forgetting,
        ("friend_or_foe", "first", "level 3"),
    ),
    "models opponents by own rewards": (
        thinkers,
        "turn",
        learn_from_own_rewards,
        ("chicken", "defects", "level 2"),
    ),
    "adds targets": (thinkers, "move_weights", values_at_s, ("chicken", "defects", "q")),
    "modelled players stay at the level below": (
        thinkers,
        "respond",
        lambda mind, j, *rest: (
            None if j == 0 and len(mind.levels.alphas) == 3 else RESPOND(mind, j, *rest)
        ),
        ("chicken", "defects", "level 3"),
    ),
    "a shared coin pays both": (rules, "collect_coins", shared_coin_twice, ("hers", "q", "q")),
    "ends and horizons are bootstrapped": (
        averaging,
        "learn",
        learn_past_ends,
        ("grid", "first", "q softmax"),
    ),
    "every model is counted as correct": (
        averaging,
        "count_correct",
        count_all,
        ("chicken", "tit for tat", "averaging"),
    ),
    "models are not weighed": (
        averaging,
        "add_values",
        add_unweighted,
        ("matrix with memory", "tit for tat", "averaging"),
    ),
    "the smoother follows": (
        episodes,
        "set_greedy",
        lambda psi, n, *rest: GREEDY_POLICY(-psi, n, *rest),
        ("friend_or_foe", "first", "q"),
    ),
}


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("variant", BROKEN)
def test_broken_loops_are_detected(variant, monkeypatch):
    module, name, broken, case = BROKEN[variant]
    plain_loop(monkeypatch)
    assert difference(*greedy_pair(*case, episodes=10)) < 1e-9
    monkeypatch.setattr(module, name, broken)
    assert difference(*greedy_pair(*case, episodes=10)) > 1e-3


def test_shift_of_epsilon_by_a_tenth_is_detected():
    """Power of the test of distributions: ε = 0.2 instead of 0.1."""
    states = [
        play_game(
            game("sharing", "mixed", 1500, 20),
            player("level 2", epsilon=epsilon),
            alike=True,
        )
        for epsilon in (0.1, 0.2)
    ]
    assert largest_z(*states, 1500) > 9


@pytest.mark.parametrize("policy", ["epsilon_greedy", "softmax"])
def test_known_policy_has_exact_mean_rewards(policy):
    """Q(a) = (0, 1, 0.5) is nearly constant: E r = Σ_a p(a) Σ_b p(b) r(a, b) with known p."""
    r = double([[1.0, -1.0], [3.0, 0.0], [-2.0, 5.0]])
    problem = matrix_game(
        r,
        replicates=4000,
        episodes=25,
        opponent=component("attacker", "fixed_policy", plays=[0.3, 0.7]),
    )
    keys = {"policy": policy, "epsilon": 0.3, "temperature": 0.5, "alpha": 1e-12}
    inference = component("inference", "q_learning", **keys)
    rng, state = start_game(problem, inference)
    values = double([0.0, 1.0, 0.5])
    state.mind.q[0].values.copy_(values.view(1, 1, 3, 1))
    play_episodes(inference, problem, rng, state, 0, 25)
    p = torch.softmax(values / 0.5, 0) if policy == "softmax" else double([0.1, 0.8, 0.1])
    rewards = state.standing.rewards_so_far
    exact = float(p @ r @ double([0.3, 0.7]))
    assert abs(float(rewards.mean()) - exact) < 4 * float(rewards.std()) / rewards.numel() ** 0.5
    first = state.standing.first_actions[0]
    assert abs(float(first.mean()) - float(p[0])) < 4 * float(first.std()) / first.numel() ** 0.5


@pytest.mark.parametrize(
    "case",
    [
        ("friend_or_foe", "smoother", "level 3"),
        ("grid", "smoother", "level 2 draws"),
        ("his", "level 2", "q softmax"),
    ],
)
def test_resumed_run_is_identical(case):
    name, opponent, agent = case
    inference = player(agent)

    def open_game():
        problem = game(name, opponent, 5, 20)
        return inference, problem, *start_game(problem, inference)

    whole, repeat = play_and_resume(open_game, 9)
    assert difference(whole, repeat) == 0


@pytest.mark.slow  # compilation for another type takes 20 s
def test_float32_games_stay_float32():
    setting = Setting(Path(), torch.device("cpu"), torch.float32, 5)
    problem = component("dataset", "friend_or_foe", episodes=30).load(Streams(0), setting)
    problem.attacker = component("attacker", "exponential_smoother")
    state = play_game(problem, player("level 2"))
    assert state.mind.q[0].values.dtype == state.standing.rewards_so_far.dtype == torch.float32
