"""Players who follow gradients, on both sides, stopped inside an episode of theirs and taken up
again: bit for bit the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.runs.configured import component

from components.contracts.roles import Setting
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

KEYS = {
    "policy_gradient": {"rounds": 5, "baseline": "by_state"},
    "opponent_shaping": {"every": 3},
    "one_shot": {},
}


@pytest.mark.parametrize("hers", KEYS)
@pytest.mark.parametrize("his", KEYS)
def test_a_pair_goes_on_as_if_nothing_had_happened(hers, his):
    def opened():
        rng, setting = Streams(4), Setting(Path(), torch.device("cpu"), torch.float64, 3)
        game = component("dataset", "iterated_matrix", episodes=14).load(rng, setting)
        game.attacker = component(
            "attacker", "learner", agent=component("inference", his, **KEYS[his])
        )
        player = component("inference", hers, **KEYS[hers])
        return (
            player,
            game,
            rng,
            player.init(component("model", "q_table").build(game, rng), game, rng),
        )

    def stepped(player, game, rng, state, start, stop):
        for _, episode in game.batches("episode", rng, start, stop):
            state, _ = player.step(state, episode, rng)
        return state

    player, game, rng, state = opened()
    state = stepped(player, game, rng, state, 0, 7)  # in the middle of five rounds, and of three
    tensors: dict = {}
    skeleton = pack(state, tensors)
    kept = {
        name: value.rows.clone() if hasattr(value, "rows") else value.clone()
        for name, value in tensors.items()
    }
    streams = {
        name: getattr(rng, name).get_state() for name in ("noise", "attack", "batches", "init")
    }
    through = stepped(player, game, rng, state, 7, 14)
    player, game, rng, fresh = opened()
    for name, value in streams.items():
        getattr(rng, name).set_state(value)
    again = stepped(player, game, rng, unpack(skeleton, kept, fresh), 7, 14)
    assert torch.equal(through.standing.rewards_so_far, again.standing.rewards_so_far)
    states = torch.full((3,), 2)
    assert torch.equal(
        player.policy_at(through.mind, states, 13), player.policy_at(again.mind, states, 13)
    )
