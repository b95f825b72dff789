"""The regulator: taxes, and ascent of the welfare of the players."""

import math

import pytest
import torch
from support.runs.configured import F64, component
from support.small.small_games import move_of, seat_of

from components.contracts.games import Turn
from runner.execution.rng import Streams

R = 4000


def regulator(**keys):
    return component("attacker", "regulator", **keys)


def seat(replicates=R):
    return seat_of(replicates, 0, (2, 2), 0)


TURN = Turn(torch.zeros(R).long(), 0, None)


def play_regulator(turns, welfare, seed, replicates=R, **keys):
    """Rates [t, R] with given ``welfare(rates so far)``, and θ before each turn and after the last
    one."""
    player = regulator(**keys)
    rng = Streams(seed)
    state = player.reset(seat(replicates), rng)
    rates = []
    thetas = [state.theta]
    for _ in range(turns):
        rates.append(player.act(state, TURN, rng))
        nobody = torch.zeros(replicates).long()
        state = player.observe(state, move_of(nobody, r=welfare(rates)))
        thetas.append(state.theta)
    return torch.stack(rates), torch.stack(thetas)


def invert_rate(rate):
    """Solve τ = ½ sigmoid(d) for d."""
    return torch.logit(rate / 0.5)


def z_of(steps, mean):
    return abs(float(steps.mean()) - mean) / (float(steps.std()) / math.sqrt(len(steps)))


def test_rates_match_policies():
    rng = Streams(0)
    for policy, rate in (("constant", 0.366), ("none", 0.0)):
        player = regulator(policy=policy)
        assert torch.equal(
            player.act(player.reset(seat(), rng), TURN, rng),
            torch.full((R,), rate, dtype=F64),
        )
    player = regulator(policy="discrete")
    action = player.act(player.reset(seat(), rng), TURN, rng)
    shares = [float((action == rate).double().mean()) for rate in (0.0, 0.15, 0.3, 0.5)]
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
    player = regulator(policy="gaussian", start=0.4, sd=0.05)
    d = invert_rate(player.act(player.reset(seat(), rng), TURN, rng))
    assert d.mean() == pytest.approx(0.4, abs=4 * 0.05 / math.sqrt(R))
    assert d.std() == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("baseline", [True, False])
def test_step_follows_welfare_gradient(baseline):
    """∇_θ E[SU(τ(d))] of d ~ N(θ, σ²) with SU = d is 1 for all θ; a z-test over replicates after
    the second step."""
    keys = {"policy": "gaussian", "sd": 0.3, "start": 0.2, "every": 5, "lr": 0.01}
    _, thetas = play_regulator(
        10, lambda rates: invert_rate(rates[-1]), 2, baseline=baseline, **keys
    )
    assert z_of((thetas[10] - thetas[5])[:, 0] / 0.01, 1) < 4


def theta_steps(credit, every=6):
    """Steps of θ with lr = 1 and learning players: the rate of a turn changes the welfare of all
    later turns by ``slope`` d."""

    def welfare(rates):  # this turn's rate affects only later turns
        total = sum(invert_rate(rate) - 0.2 for rate in rates[:-1])
        return 0.01 * (torch.zeros(R, dtype=F64) + total)

    keys = {"policy": "gaussian", "sd": 0.3, "start": 0.2, "lr": 1e-6, "baseline": True}
    _, thetas = play_regulator(4 * every, welfare, 4, every=every, credit=credit, **keys)
    return thetas[::every].diff(dim=0)[..., 0] / 1e-6


def test_credit_by_turn_ignores_later_welfare():
    """∇ E[SU_t] = 0 for the welfare of the same turn, which is determined before; with ``change``
    it is exactly ``every`` times the slope."""
    for step in theta_steps("turn")[
        1:
    ]:  # the baseline of the first step is its own mean, which depends on the draws
        assert z_of(step, 0) < 4
    first, second, *later = theta_steps("change")
    assert not first.any()
    assert not second.any()
    for step in later:
        assert z_of(step, 6 * 0.01) < 4
        assert z_of(step, 0) > 8


def test_credit_by_change_keeps_each_draw():
    keys = {"policy": "discrete", "every": 5, "credit": "change"}
    rates, _ = play_regulator(15, lambda rates: torch.zeros(R, dtype=F64), 5, **keys)
    kept = rates.view(3, 5, R)
    assert torch.equal(kept, kept[:, :1].expand_as(kept))
    assert (kept[0, 0] != kept[1, 0]).any()


def test_best_common_rate_is_found():
    def welfare(rates):
        return -(rates[-1] - 0.3).abs() * 10

    _, thetas = play_regulator(2000, welfare, 3, 50, policy="discrete", every=10, lr=1.0)
    assert (thetas[-1].softmax(-1)[:, 2] > 0.8).double().mean() > 0.9
