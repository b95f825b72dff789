"""Two of those who solve games or climb, stopped half-way and taken up again: bit for bit what goes
through."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.runs.configured import component

from components.contracts.roles import Setting
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

NAMES = ["minimax_q", "friend_or_foe_q", "nash_q", "restricted_nash", "wolf_phc"]


def walk(episodes):
    setting = Setting(Path(), torch.device("cpu"), torch.float64, 3)
    return component("dataset", "friend_or_foe_grid", episodes=episodes, horizon=6).load(
        Streams(1), setting
    )


def decide(name):
    nested = {"forecaster": component("inference", "level_k")} if name == "restricted_nash" else {}
    return component("inference", name, **nested)


@pytest.mark.parametrize("hers", NAMES)
@pytest.mark.parametrize("his", NAMES)
def test_a_pair_goes_on_as_if_nothing_had_happened(hers, his):
    def opened():
        problem, rng = walk(6), Streams(4)
        problem.attacker = component("attacker", "learner", agent=decide(his))
        inference = decide(hers)
        model = component("model", "q_table").build(problem, rng)
        return inference, problem, rng, inference.init(model, problem, rng)

    def stepped(inference, problem, rng, state, start, stop):
        for _, episode in problem.batches("episode", rng, start, stop):
            state, _ = inference.step(state, episode, rng)
        return state

    def kept(state):
        tensors = {}
        skeleton = pack(state, tensors)
        return skeleton, {
            n: v.rows.clone() if hasattr(v, "rows") else v for n, v in tensors.items()
        }

    inference, problem, rng, state = opened()
    half, end = problem.episodes // 2, problem.episodes
    state = stepped(inference, problem, rng, state, 0, half)
    skeleton, tensors = kept(state)
    streams = rng.state()
    whole = kept(stepped(inference, problem, rng, state, half, end))
    inference, problem, rng, fresh = opened()
    rng.restore(streams)
    again = kept(stepped(inference, problem, rng, unpack(skeleton, tensors, fresh), half, end))
    assert whole[0] == again[0]
    assert all(
        torch.equal(whole[1][name].nan_to_num(), again[1][name].nan_to_num()) for name in whole[1]
    )
