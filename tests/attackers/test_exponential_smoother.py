from pathlib import Path

import pytest
import torch
import yaml
from pydantic import ValidationError

from components.attackers.opponents.exponential_smoother import ExponentialSmoother
from runner.run.rng import Streams

CONF = Path(__file__).parents[2] / "conf" / "attacker" / "exponential_smoother.yaml"
CPU = torch.device("cpu")


def smoother(**overrides) -> ExponentialSmoother:
    return ExponentialSmoother(**(yaml.safe_load(CONF.read_text()) | overrides))


def test_update_is_the_printed_one():
    attacker, beta = smoother(beta=0.7), 0.7
    state = attacker.reset(2, 2, CPU, torch.float64)
    choices = torch.randint(0, 2, (30, 2), generator=torch.Generator().manual_seed(0))
    p = [[0.5, 0.5], [0.5, 0.5]]
    for a in choices:
        state = attacker.observe(state, a, torch.zeros(2, dtype=torch.long), torch.zeros(2))
        for r in range(2):
            p[r] = [beta * p[r][i] + (1 - beta) * (i == int(a[r])) for i in range(2)]
    torch.testing.assert_close(state, torch.tensor(p, dtype=torch.float64))
    torch.testing.assert_close(state.sum(1), torch.ones(2, dtype=torch.float64))


def test_the_reward_goes_where_she_is_least_expected():
    state = torch.tensor([[0.6, 0.1, 0.3], [0.2, 0.7, 0.1]], dtype=torch.float64)
    for seed in range(5):
        assert smoother().act(state, Streams(seed)).tolist() == [1, 2]


def test_ties_are_broken_evenly():
    n = 20_000
    state = torch.tensor([0.4, 0.3, 0.3], dtype=torch.float64).expand(n, 3)
    b = smoother().act(state, Streams(0))
    assert not bool((b == 0).any())
    share = float((b == 1).double().mean())
    assert abs(share - 0.5) < 4 * (0.25 / n) ** 0.5


def test_he_draws_from_the_attack_stream_alone():
    rng, untouched = Streams(0), Streams(0)
    smoother().act(torch.full((4, 2), 0.5), rng)
    assert torch.equal(rng.noise.get_state(), untouched.noise.get_state())
    assert not torch.equal(rng.attack.get_state(), untouched.attack.get_state())


def test_below_one_half_he_mirrors_her_last_action():
    attacker = smoother(beta=0.45)
    state = attacker.reset(50, 2, CPU, torch.float64)
    rng, generator = Streams(0), torch.Generator().manual_seed(1)
    for _ in range(20):
        a = torch.randint(0, 2, (50,), generator=generator)
        state = attacker.observe(state, a, a, torch.zeros(50))
        assert torch.equal(attacker.act(state, rng), 1 - a)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1])
def test_beta_outside_the_open_unit_interval_is_refused(beta):
    with pytest.raises(ValidationError):
        smoother(beta=beta)
