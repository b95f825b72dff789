"""The third party: what he taxes, and that he climbs the welfare of those whom he taxes."""

from __future__ import annotations

import math

import pytest
import torch
from support.runs.configured import component
from support.small.small_games import game_of

from components.contracts.games import Move, Seat, Turn
from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

R = 4000


def regulator(**keys):
    return component("attacker", "regulator", **keys)


def seat(replicates=R):
    return Seat(replicates, 0, (2, 2), 0, 1, torch.device("cpu"), torch.float64, None)


def told(welfare):
    nothing = torch.zeros(len(welfare))
    return Move(
        0, nothing, nothing, nothing, None, nothing, welfare, nothing, nothing, None, None, False
    )


TURN = Turn(torch.zeros(R).long(), 0, None)


def test_rates_are_what_the_policies_say():
    rng = Streams(0)
    for policy, rate in (("constant", 0.366), ("none", 0.0)):
        player = regulator(policy=policy)
        assert torch.equal(
            player.act(player.reset(seat(), rng), TURN, rng),
            torch.full((R,), rate, dtype=torch.float64),
        )
    player = regulator(policy="discrete")
    found = player.act(player.reset(seat(), rng), TURN, rng)
    shares = [float((found == rate).double().mean()) for rate in (0.0, 0.15, 0.3, 0.5)]
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
    player = regulator(policy="gaussian", start=0.4, sd=0.05)
    d = torch.logit(player.act(player.reset(seat(), rng), TURN, rng) / 0.5)
    assert float(d.mean()) == pytest.approx(0.4, abs=4 * 0.05 / math.sqrt(R))
    assert float(d.std()) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize("baseline", [True, False])
def test_the_step_climbs_the_welfare(baseline):
    """∇_θ E[SU(τ(d))] of d ~ N(θ, σ²) where SU = d: 1 whatever θ is; a z-test over replicates after
    the second step."""
    player, rng = (
        regulator(policy="gaussian", sd=0.3, start=0.2, every=5, lr=0.01, baseline=baseline),
        Streams(2),
    )
    state = player.reset(seat(), rng)
    before = None
    for t in range(10):
        if t == 5:
            before = state.theta.clone()
        d = torch.logit(player.act(state, TURN, rng) / 0.5)
        state = player.observe(state, told(d))
    moved = (state.theta - before)[:, 0] / 0.01
    assert abs(float(moved.mean()) - 1) < 4 * float(moved.std()) / math.sqrt(R)


def learnt(credit, every=6, slope=0.01):
    """Where players learn: each turn's rate moves the welfare of all turns that follow by ``slope``
    d.  Steps of θ, lr = 1."""
    player = regulator(
        policy="gaussian", sd=0.3, start=0.2, every=every, lr=1e-6, credit=credit, baseline=True
    )
    rng, welfare = Streams(4), torch.zeros(R, dtype=torch.float64)
    state, steps = player.reset(seat(), rng), []
    for t in range(4 * every):
        d = torch.logit(player.act(state, TURN, rng) / 0.5)
        before = state.theta
        state = player.observe(state, told(welfare))  # what this turn's rate leads to comes later
        welfare = welfare + slope * (d - 0.2)
        if (t + 1) % every == 0:
            steps.append((state.theta - before)[:, 0] / 1e-6)
    return steps


def test_by_its_turn_a_rate_that_is_learnt_from_is_credited_with_nothing():
    """∇ E[SU_t] = 0 of the turn's own welfare, which was decided before; by change it is ``every``
    times the slope, exactly."""
    for step in learnt("turn")[1:]:  # the first takes its own mean off, which the draws have moved
        assert abs(float(step.mean())) < 4 * float(step.std()) / math.sqrt(R)
    first, second, *later = learnt("change")
    assert not first.any()
    assert not second.any()
    for step in later:
        assert abs(float(step.mean()) - 6 * 0.01) < 4 * float(step.std()) / math.sqrt(R)
        assert float(step.mean()) > 8 * float(step.std()) / math.sqrt(R)


def test_a_draw_is_kept_where_it_is_credited_with_the_change():
    player, rng = regulator(policy="discrete", every=5, credit="change"), Streams(5)
    state, rates = player.reset(seat(), rng), []
    for _ in range(15):
        rates.append(player.act(state, TURN, rng))
        state = player.observe(state, told(torch.zeros(R, dtype=torch.float64)))
    kept = torch.stack(rates).view(3, 5, R)
    assert torch.equal(kept, kept[:, :1].expand_as(kept))
    assert (kept[0, 0] != kept[1, 0]).any()


def test_of_rates_the_best_for_all_is_found():
    player, rng = regulator(policy="discrete", every=10, lr=1.0), Streams(3)
    state = player.reset(seat(50), rng)
    for _ in range(2000):
        rate = player.act(state, Turn(torch.zeros(50).long(), 0, None), rng)
        state = player.observe(state, told(-(rate - 0.3).abs() * 10))
    assert (state.theta.softmax(-1)[:, 2] > 0.8).double().mean() > 0.9


@pytest.mark.parametrize(
    ("name", "members", "message"),
    [
        ("friend_or_foe", ["tit_for_tat", "regulator"], "room for no third party"),
        (
            "data_sharing",
            ["tit_for_tat", "regulator", "regulator"],
            "room for one third party alone",
        ),
        ("data_sharing", ["regulator"], "0 players for the 1 seats"),
    ],
)
def test_a_market_has_room_for_one(name, members, message):
    players = [component("attacker", member) for member in members]
    game = game_of(name, 3, component("attacker", "together", members=players))
    with pytest.raises(ConfigMismatchError, match=message):
        game.opponents()
