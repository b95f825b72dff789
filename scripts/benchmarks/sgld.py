"""Chains of SGLD on networks."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Way
from scripts.benchmarks.workloads import component, noise_regression
from scripts.peers.installed import AbsentPeer
from scripts.peers.network_particles import (
    BATCH,
    INPUTS,
    NOISE,
    ROWS,
    STEP_SIZE,
    UNITS,
    build_loop,
    build_posteriors_steps,
)

LOOP = "loop over modules"


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


def measure(options: Namespace, report: Report) -> None:
    """SGLD on K networks of 13-50-1 against ``posteriors`` and a Python loop over modules.

        python -m scripts.benchmarks sgld --dtype float64

    ``posteriors`` (Normal Computing) maps its log posterior or its whole update over the chains with
    ``torch.vmap``; the faster of the two is the peer.  All see the same particles, batch and model and
    must take the same drift.  Each peer is timed on its own against ours: the loop scatters thousands
    of small tensors over the heap, which slows down what comes next."""
    dtype = getattr(torch, options.dtype)
    rng = Streams(0)
    problem, batch = noise_regression(ROWS, INPUTS, BATCH, rng, dtype)
    network = component("model", "mlp", widths=[UNITS], noise=NOISE).build(problem, rng)
    theta = network.sample_prior(options.particles, rng.init)
    step, drift = build_ours(network, problem, theta, batch)
    peers = {}
    with suppress(AbsentPeer):
        peers |= build_posteriors_steps(network, theta, batch)
    peers[LOOP] = build_loop(network, theta, batch)
    within = 1e-9 if dtype == torch.float64 else 1e-3
    for name, (_, peer_drift) in peers.items():
        report.assert_close(f"{name}: drifts", drift, peer_drift, within)
    ratios = {}
    for name, (peer_step, _) in peers.items():
        repeats = -(-options.repeats // 3) if name == LOOP else options.repeats
        seconds = report.time({"ours": step, name: peer_step}, repeats, warmups=10)
        ratios[name] = seconds[name] / seconds["ours"]
    report.record(LOOP, ratios.pop(LOOP))
    if ratios:
        report.record("posteriors", min(ratios.values(), key=np.median))
    report.facts |= {"dtype": options.dtype, "particles": options.particles}
