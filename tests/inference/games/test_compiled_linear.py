"""The coin game by compiled loops against the tensors: the same numbers, bit by bit, from the same
seed."""

from pathlib import Path

import pytest
import torch
from configured import component
from small_games import same, stepped

from components.contracts.roles import Setting
from components.errors import ConfigMismatchError
from components.maths.compiled import loops
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

needs_numba = pytest.mark.skipif(
    not loops.available(), reason="numba is not installed: pip install 'bayes-runner[fast]'"
)

COINS = {
    "corners": {"size": 3, "start": "fixed"},
    "random": {"size": 4, "start": "random"},
    "hers": {"size": 2, "start": "random", "shared": "hers", "moves": 5},
    "his": {"size": 3, "start": "random", "shared": "his"},
}
FAST = {"alpha": 0.2, "gamma": 0.9}
SOFT = FAST | {"policy": "softmax", "temperature": 0.3}
BOTH = SOFT | {"policy_opponent": "softmax", "alpha_opponent": 0.1}
MINDS = {
    "q": ("q_learning", SOFT),
    "q ε-greedy": ("q_learning", FAST | {"bootstrap_at_horizon": False}),
    "fpq": ("fpq_learning", SOFT | {"forget": 0.8}),
    "level 1": ("level_k", BOTH | {"level": 1, "forecast": "sampled"}),
    "level 2": ("level_k", BOTH | {"temperature_opponent": 0.7}),
    "level 2 at s": ("level_k", BOTH | {"forecast_at": "current", "bootstrap_at_horizon": False}),
    "level 2 ε-greedy": (
        "level_k",
        FAST | {"ties": "first", "epsilon": {"start": 0.5, "factor": 0.9, "every": 2}},
    ),
    "level 3": ("level_k", BOTH | {"level": 3, "forget": 0.9}),
    "level 4": ("level_k", BOTH | {"level": 4, "forecast_at": "current"}),
}
PAIRS = [
    ("corners", "level 2", "q"),
    ("his", "q", "level 2"),
    ("hers", "level 2 at s", "q ε-greedy"),
]
PAIRS += [
    ("random", hers, his)
    for hers, his in zip(MINDS, [*list(MINDS)[4:], *list(MINDS)[:4]], strict=True)
]


def game(coins, his, replicates=5, episodes=12, dtype=torch.float64):
    setting = Setting(Path(), torch.device("cpu"), dtype, replicates)
    made = component("dataset", "coin_game", episodes=episodes, **COINS[coins]).load(
        Streams(0), setting
    )
    name, keys = MINDS[his]
    made.attacker = component("attacker", "learner", agent=component("inference", name, **keys))
    return made


def maker(hers, engine, **more):
    name, keys = MINDS[hers]
    return component("inference", name, engine=engine, **(keys | more))


def opened(problem, inference, seed=3):
    rng = Streams(seed)
    return rng, inference.init(component("model", "q_linear").build(problem, rng), problem, rng)


def played(problem, inference):
    rng, state = opened(problem, inference)
    return stepped(inference, problem, rng, state, 0, problem.episodes), rng.state()


@needs_numba
@pytest.mark.parametrize(("coins", "hers", "his"), PAIRS)
def test_the_loops_give_the_tensors_numbers_and_leave_the_streams_where_they_did(coins, hers, his):
    (one, left), (other, right) = (
        played(game(coins, his), maker(hers, engine)) for engine in ("tensors", "compiled")
    )
    assert same(one, other)
    assert one.standing.rewards_so_far.any()
    assert all(torch.equal(left[name], right[name]) for name in left)


@needs_numba
@pytest.mark.parametrize(
    ("replicates", "episodes", "dtype"),
    [(100, 20, torch.float64), pytest.param(7, 20, torch.float32, marks=pytest.mark.slow)],
)
def test_they_do_so_for_many_seeds_and_in_float32(replicates, episodes, dtype):
    states = [
        played(game("random", "q", replicates, episodes, dtype), maker("level 2", engine))[0]
        for engine in ("tensors", "compiled")
    ]
    assert same(*states)


@needs_numba
@pytest.mark.parametrize("before", ["tensors", "compiled"])
@pytest.mark.parametrize("after", ["tensors", "compiled"])
@pytest.mark.parametrize(("hers", "his"), [("level 2", "q"), ("q", "level 3")])
def test_a_checkpoint_of_one_engine_goes_on_in_the_other(before, after, hers, his):
    whole, _ = played(game("random", his), maker(hers, "tensors"))
    problem, inference = game("random", his), maker(hers, before)
    rng, state = opened(problem, inference)
    state = stepped(inference, problem, rng, state, 0, 5)
    tensors = {}
    skeleton = pack(state, tensors)
    kept = {
        name: value.rows.clone() if hasattr(value, "rows") else value
        for name, value in tensors.items()
    }
    streams = rng.state()
    problem, inference = game("random", his), maker(hers, after)
    rng, fresh = opened(problem, inference)
    rng.restore(streams)
    assert same(stepped(inference, problem, rng, unpack(skeleton, kept, fresh), 5, 12), whole)


@needs_numba
def test_who_has_no_loop_is_named():
    with pytest.raises(
        ConfigMismatchError, match="has no loop with forecast=sampled; use engine=tensors"
    ):
        opened(game("random", "q"), maker("level 2", "compiled", forecast="sampled"))
    problem = game("random", "q")
    problem.attacker = component("attacker", "fixed_policy", plays="random")
    with pytest.raises(
        ConfigMismatchError,
        match=r"against attacker=learner of q_learning, .* here attacker=fixed_policy; engine",
    ):
        opened(problem, maker("level 2", "compiled"))
    problem.attacker = component(
        "attacker", "learner", agent=component("inference", "model_averaging")
    )
    with pytest.raises(
        ConfigMismatchError,
        match=r"here attacker=learner attacker\.agent=model_averaging; engine=tensors plays all",
    ):
        opened(problem, maker("level 2", "compiled"))
    problem.attacker = component(
        "attacker", "learner", agent=component("inference", "level_k", **BOTH, forecast="sampled")
    )
    with pytest.raises(
        ConfigMismatchError, match=r"no loop with attacker\.agent of forecast=sampled"
    ):
        opened(problem, maker("level 2", "compiled"))
    setting = Setting(Path(), torch.device("cpu"), torch.float64, 3)
    problem = component("dataset", "friend_or_foe").load(Streams(0), setting)
    problem.attacker = component("attacker", "exponential_smoother")
    with pytest.raises(
        ConfigMismatchError, match="of linear action values it plays dataset=coin_game alone"
    ):
        opened(problem, maker("level 2", "compiled"))


def test_weights_at_marks_are_the_product_with_the_features():
    """The same as a dense product, of states with coins and without, before and after a step."""
    problem = game("random", "q", replicates=40)
    environment, generator = problem.environment, torch.Generator().manual_seed(0)
    values = component("model", "q_linear").build(problem, Streams(0))
    values.weights.normal_(generator=generator)
    s = environment.reset(40, generator)
    s[:20, 2] = s[:10, 3] = environment.size**2
    phi = environment.features(s)
    assert phi.sum() == 4 * 40 - 30
    a, b = torch.arange(40) % 4, torch.arange(40) // 4 % 4
    dense, cell = values.weights.clone(), a * 4 + b
    product = (dense @ phi.unsqueeze(2)).view(40, 4, 4)
    torch.testing.assert_close(values.q(s), product)
    target, rows = torch.randn(40, dtype=torch.float64, generator=generator), torch.arange(40)
    dense[rows, cell] += 0.1 * (target - product[rows, a, b]).unsqueeze(1) * phi
    values.learn(s, a, b, target, 0.1)
    torch.testing.assert_close(values.weights, dense)
