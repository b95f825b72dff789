"""Steps of SGLD that the benchmark times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Way
from scripts.benchmarks.workloads import component
from scripts.peers.network_particles import (
    STEP_SIZE,
)


def build_ours(network: Any, problem: Any, theta: Tensor, batch: Any) -> tuple[Way, Tensor]:
    """Our step, and its drift: the change of θ without the noise."""
    keys = {"chains": len(theta), "step_size": STEP_SIZE, "burn_in": 10**9}
    sgld = component("inference", "sgld", **keys)
    rng = Streams(0)
    state = replace(sgld.init(network, problem, rng), theta=theta)
    before = rng.noise.get_state()

    def step() -> None:
        nonlocal state
        state, _ = sgld.step(state, batch, rng)

    step()
    change = state.theta - theta
    rng.noise.set_state(before)
    noise = torch.randn(theta.shape, generator=rng.noise, dtype=theta.dtype)
    return step, change - (2 * STEP_SIZE) ** 0.5 * noise
