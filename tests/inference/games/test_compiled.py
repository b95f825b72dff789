"""Compiled loops against the tensors: the same numbers, bit by bit, from the same seed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from configured import component
from small_games import play, same, stepped

from components.contracts.roles import Setting
from components.errors import ConfigMismatchError
from components.games.beliefs.bloom_counts import BloomCounts
from components.games.fast import arithmetic, table, uniforms
from components.maths.compiled import loops
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

needs_numba = pytest.mark.skipif(
    not loops.available(), reason="numba is not installed: pip install 'bayes-runner[fast]'"
)

DATASETS = {
    "friend_or_foe": {"targets": 2},
    "three targets": {"targets": 3},
    "friend_or_foe_grid": {"horizon": 20},
    "ends of the room": {"horizon": 20, "counts": "last_move", "learns_from": "ends"},
    "matrix": {},
    "matrix with memory": {"memory": 1},
    "chicken": {"payoffs": "chicken", "T": 2.0, "R": 1.0, "S": -1.0, "P": -5.0},
    "data_sharing": {"memory": 1, "incentive": 1.5, "incentive_until": 30},
}
NAMES = {"three targets": "friend_or_foe", "ends of the room": "friend_or_foe_grid", "matrix": "iterated_matrix",
         "matrix with memory": "iterated_matrix", "chicken": "iterated_matrix"}  # fmt: skip
OPPONENTS = {
    "smoother": ("exponential_smoother", {}),
    "first": ("exponential_smoother", {"ties": "first"}),
    "mixed": ("fixed_policy", {"plays": "random"}),
    "tit for tat": ("tit_for_tat", {"forgives": 0.1, "errs": 0.05}),
}
MAKERS = {
    "q": ("q_learning", {}),
    "q softmax": ("q_learning", {"policy": "softmax", "temperature": 3.0}),
    "fpq": ("fpq_learning", {}),
    "fpq forgets": (
        "fpq_learning",
        {"forget": 0.8, "alpha": 0.7, "epsilon": {"start": 0.5, "factor": 0.9, "every": 7}},
    ),
    "fpq softmax": ("fpq_learning", {"policy": "softmax"}),
    "level 1": ("level_k", {"level": 1}),
    "level 2": ("level_k", {}),
    "level 2 softmax": (
        "level_k",
        {"policy": "softmax", "bootstrap_at_end": True, "bootstrap_at_horizon": False},
    ),
    "level 3": (
        "level_k",
        {
            "level": 3,
            "alpha_opponent": 0.6,
            "forget": 0.9,
            "epsilon_opponent": {"mean": 0.1, "rise": 0.2},
        },
    ),
    "level 2 draws": ("level_k", {"forecast": "sampled", "ties": "first"}),
    "level 3 draws": (
        "level_k",
        {"level": 3, "forecast": "sampled", "forecast_at": "current", "epsilon_opponent": 0.4},
    ),
    "level 3 first": ("level_k", {"level": 3, "ties": "first", "epsilon": 0.0}),
    "level 1 last": ("level_k", {"level": 1, "ties": "last", "epsilon": 0.0}),
    "level 4": ("level_k", {"level": 4, "forecast_at": "current", "alpha": 1.0}),
    "level 2 decays": ("level_k", {"epsilon_opponent": {"start": 0.9, "factor": 0.5, "every": 4}}),
}


def game(
    dataset="friend_or_foe", opponent="smoother", replicates=6, episodes=60, dtype=torch.float64
):
    setting = Setting(Path(), torch.device("cpu"), dtype, replicates)
    name = NAMES.get(dataset, dataset)
    made = component("dataset", name, **({"episodes": episodes} | DATASETS[dataset])).load(
        Streams(0), setting
    )
    named, keys = OPPONENTS[opponent]
    made.attacker = component("attacker", named, **keys)
    return made


def maker(name, engine):
    named, keys = MAKERS[name]
    return component("inference", named, engine=engine, **keys)


PAIRS = [
    (dataset, opponent)
    for dataset in DATASETS
    for opponent in OPPONENTS
    if not (
        opponent == "tit for tat"
        and dataset in ("three targets", "friend_or_foe_grid", "ends of the room")
    )
]
ALL = [
    (*PAIRS[(i + j) % len(PAIRS)], name, j)
    for i, name in enumerate(MAKERS)
    for j in range(0, len(PAIRS), 4)
]
ALL += [(*pair, "level 2", 1) for pair in PAIRS]


@needs_numba
@pytest.mark.parametrize(("dataset", "opponent", "name", "seed"), ALL)
def test_the_loops_give_the_tensors_numbers(dataset, opponent, name, seed):
    few = (
        {"replicates": 4, "episodes": 8}
        if dataset in ("friend_or_foe_grid", "ends of the room")
        else {}
    )
    (one, _), (other, _) = (
        play(game(dataset, opponent, **few), maker(name, engine), seed)
        for engine in ("tensors", "compiled")
    )
    assert same(one, other)


@needs_numba
@pytest.mark.slow  # 12 s, of which compiling takes most
@pytest.mark.parametrize("name", ["q", "fpq forgets", "level 2", "level 3"])
def test_they_do_so_in_float32(name):
    played = [
        play(game(dtype=torch.float32, episodes=300), maker(name, engine))[0]
        for engine in ("tensors", "compiled")
    ]
    assert same(*played)


@needs_numba
def test_they_do_so_for_many_seeds_and_episodes():
    (one, p), (other, q) = (
        play(game("three targets", replicates=40, episodes=1000), maker("level 2", e))
        for e in ("tensors", "compiled")
    )
    assert same(one, other)
    assert torch.equal(p.rewards, q.rewards)
    assert torch.equal(p.values, q.values)
    assert torch.equal(p.forecast, q.forecast)


@needs_numba
@pytest.mark.parametrize("dataset", ["friend_or_foe", "friend_or_foe_grid"])
@pytest.mark.parametrize("opponent", ["smoother", "mixed"])
@pytest.mark.parametrize("before", ["tensors", "compiled"])
@pytest.mark.parametrize("after", ["tensors", "compiled"])
def test_a_checkpoint_of_one_engine_goes_on_in_the_other(dataset, opponent, before, after):
    whole, _ = play(game(dataset, opponent, episodes=20), maker("level 3", "tensors"), seed=4)

    def opened(engine):
        problem, rng = game(dataset, opponent, episodes=20), Streams(4)
        inference = maker("level 3", engine)
        return (
            inference,
            problem,
            rng,
            inference.init(component("model", "q_table").build(problem, rng), problem, rng),
        )

    inference, problem, rng, state = opened(before)
    state = stepped(inference, problem, rng, state, 0, 9)
    tensors = {}
    skeleton = pack(state, tensors)
    kept = {
        name: value.rows.clone() if hasattr(value, "rows") else value
        for name, value in tensors.items()
    }
    streams = rng.state()
    inference, problem, rng, fresh = opened(after)
    rng.restore(streams)
    assert same(stepped(inference, problem, rng, unpack(skeleton, kept, fresh), 9, 20), whole)


@needs_numba
def test_the_streams_stand_where_the_tensors_left_them():
    ends = []
    for engine in ("tensors", "compiled"):
        problem, rng = game("friend_or_foe_grid", episodes=8), Streams(2)
        inference = maker("level 2", engine)
        state = inference.init(component("model", "q_table").build(problem, rng), problem, rng)
        stepped(inference, problem, rng, state, 0, 8)
        ends.append(rng.state())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@needs_numba
def test_streams_are_pytorchs_own_where_few_numbers_are_looked_at(monkeypatch):
    """Those looked at, of rows of numbers that cross the twister's blocks, and where the stream
    then stands."""
    assert uniforms.streams_known()
    generator, twin = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    room, order = torch.empty(2 * 300 * 2, dtype=torch.float64), np.zeros(300, np.int64)
    stream = uniforms.Stream(generator, True)
    for n in (300, 40, 1, 0, 7):
        order[:n] = np.sort(np.random.default_rng(n).permutation(300)[:n])
        drawn = stream.fill(room, 2, order, np.array([n])).reshape(2, 300, 2)[:, order[:n]]
        expected = torch.empty_like(room).uniform_(generator=twin).view(2, 300, 2)[:, order[:n]]
        assert torch.equal(torch.from_numpy(drawn), expected)
    stream.close()
    assert torch.equal(generator.get_state(), twin.get_state())
    played = [play(game("friend_or_foe_grid", episodes=8), maker("level 2", "compiled"))[0]]
    monkeypatch.setattr(table, "streams_known", lambda: False)
    played.append(play(game("friend_or_foe_grid", episodes=8), maker("level 2", "compiled"))[0])
    assert same(*played)


@needs_numba
def test_pytorch_rounds_as_the_loops_do():
    assert arithmetic.is_rounding_identical(torch.float64)
    assert arithmetic.is_rounding_identical(torch.float32)


def opening(problem, **keys):
    inference = component("inference", keys.pop("name", "level_k"), engine="compiled", **keys)
    model = component("model", "q_table")
    return inference.init(model.build(problem, Streams(0)), problem, Streams(0))


def test_without_numba_one_line_names_the_key_and_the_extra(monkeypatch):
    monkeypatch.setattr(loops, "available", lambda: False)
    with pytest.raises(
        ConfigMismatchError,
        match=r"inference\.engine=compiled.*needs numba.*bayes-runner\[fast\].*engine=tensors",
    ):
        opening(game())
    play(game(episodes=3), maker("level 2", "tensors"))


@needs_numba
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"forecast": "sampled", "policy": "softmax"}, "forecast=sampled and policy=softmax"),
        ({"policy_opponent": "softmax"}, "policy_opponent=softmax"),
        (
            {
                "name": "fpq_learning",
                "belief": BloomCounts(name="bloom", hashes=2, cells=11, bits=8),
            },
            "belief=bloom",
        ),
    ],
)
def test_keys_without_a_loop_are_named(keys, told):
    with pytest.raises(ConfigMismatchError, match=f"has no loop with {told}"):
        opening(game(), **keys)


@needs_numba
def test_opponents_and_games_without_a_loop_are_named():
    problem = game()
    problem.attacker = component("attacker", "oracle")
    with pytest.raises(
        ConfigMismatchError,
        match="exponential_smoother, fixed_policy and tit_for_tat, here attacker=oracle",
    ):
        opening(problem)
    setting = Setting(Path(), torch.device("cpu"), torch.float64, 3)
    problem = component("dataset", "friend_or_foe", targets=6).load(Streams(0), setting)
    problem.attacker = component("attacker", "exponential_smoother")
    with pytest.raises(ConfigMismatchError, match="at most 5 actions"):
        opening(problem)
