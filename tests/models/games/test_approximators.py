"""Linear action values and networks of them: a table for one-hot features, gradients by hand, and
separate replicates."""

import copy

import pytest
import torch
from support.runs.configured import build_model, component, double, generator, load, normal
from support.small.small_games import play, three_states
from torch.testing import assert_close

from components.errors import ConfigMismatchError

BOTH = pytest.mark.parametrize("name", ["q_linear", "q_network"])


def coins(**keys):
    return load("coin_game", replicates=4, **keys)[0]


def move(values, world, rate=0.1):
    s = world.reset(4, generator(1))
    a = torch.tensor([0, 1, 2, 3])
    b = torch.tensor([3, 3, 0, 1])
    target = double([1.0, -2.0, 0.5, 3.0])
    old_q = values.q(s).clone()
    values.learn(s, a, b, target, rate)
    return s, a, b, target, old_q


def test_mismatched_table_suggests_an_approximator():
    game = three_states(3, 60)
    game.replicates = 10**12
    with pytest.raises(
        ConfigMismatchError, match=r"000 × 3 × 2 × 3 values needs 134,110\.5 GiB, .*model=q_network"
    ):
        build_model("q_table", game)


def test_one_hot_features_equal_a_table():
    game = three_states(3, 60)
    inference = component("inference", "level_k")
    table, _ = play(game, inference)
    linear, _ = play(game, inference, model=build_model("q_linear", game))
    for cells, weights in zip(table.mind.q, linear.mind.q, strict=True):
        assert_close(cells.values, weights.values)


@BOTH
def test_step_equals_the_printed_one(name):
    """Algorithm 4.3, line 4: φ − α ∂Q/∂φ [Q − target], by finite differences of Q."""
    game = coins()
    values = build_model(name, game).fresh(4, 4)
    held = copy.deepcopy(values.state_dict())
    s, a, b, target, old_q = move(values, game.environment)
    after = copy.deepcopy(values.state_dict())
    for r in range(4):
        error = float(target[r] - old_q[r, a[r], b[r]])
        for key, start in held.items():
            steps = (after[key][r] - start[r]).reshape(-1)
            place = int(steps.abs().argmax())
            h = 1e-6
            results = []
            for sign in (1, -1):
                values.load_state_dict(held)
                with torch.no_grad():
                    values.state_dict()[key][r].view(-1)[place] += sign * h
                results.append(float(values.q(s)[r, a[r], b[r]]))
            assert float(steps[place]) == pytest.approx(
                0.1 * error * (results[0] - results[1]) / (2 * h), abs=1e-7
            )
            assert float(steps[place]) != 0


@BOTH
def test_rate_of_zero_leaves_a_replicate_unchanged(name):
    game = coins()
    values = build_model(name, game)
    old_state = copy.deepcopy(values.state_dict())
    move(values, game.environment, double([0.0, 0.1, 0.0, 0.1]))
    for key, held in old_state.items():
        now = values.state_dict()[key]
        assert torch.equal(now[[0, 2]], held[[0, 2]])
        assert not torch.equal(now[[1, 3]], held[[1, 3]])


def test_values_equal_the_product_with_features():
    """The same as a dense product, of states with coins and without, before and after a step."""
    problem, _ = load("coin_game", replicates=40, size=4, start="random")
    problem.attacker = component("attacker", "fixed_policy", plays="random")
    environment = problem.environment
    g = generator(0)
    values = build_model("q_linear", problem)
    values.values.normal_(generator=g)
    s = environment.reset(40, g)
    s[:20, 2] = s[:10, 3] = environment.size**2
    phi = environment.features(s)
    assert phi.sum() == 4 * 40 - 30
    a = torch.arange(40) % 4
    b = torch.arange(40) // 4 % 4
    dense = values.values.clone()
    product = torch.einsum("rf,rfab->rab", phi, dense)
    assert_close(values.q(s), product)
    target = normal(g, 40)
    rows = torch.arange(40)
    dense[rows, :, a, b] += 0.1 * (target - product[rows, a, b]).unsqueeze(1) * phi
    values.learn(s, a, b, target, 0.1)
    assert_close(values.values, dense)
