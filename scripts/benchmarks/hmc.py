"""Benchmark of Hamiltonian samplers on logistic regression."""

from __future__ import annotations

import math
import os
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from arviz_stats.base import array_stats
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.traces import Trace
from components.inference.log_joint import log_joint
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, train
from scripts.peers.installed import AbsentPeer

WARMUP = 1000
# inputs without the intercept: d = 25
N = 1000
INPUTS = 24
PRIOR = {"prior_scale": 1.0, "intercept_scale": 1.0}
PAIRS = (("HMC", "HMC"), ("HMC", "NUTS"), ("ChEES", "HMC"), ("NUTS", "NUTS"))


def draw_problem(dtype: torch.dtype) -> Supervised:
    """Simulated logistic regression with inputs of correlation 0.5^|i − j|."""
    g = torch.Generator().manual_seed(0)
    distance = (torch.arange(INPUTS)[:, None] - torch.arange(INPUTS)).abs()
    factor = torch.linalg.cholesky(0.5 ** distance.double())
    x = torch.randn(N, INPUTS, generator=g, dtype=torch.float64) @ factor.T
    beta = 0.5 * torch.randn(INPUTS, generator=g, dtype=torch.float64)
    y = torch.rand(N, generator=g, dtype=torch.float64) < torch.sigmoid(x @ beta - 0.5)
    batch = Batch(x.to(dtype), y.long()[:, None], torch.ones(N, 1, dtype=torch.bool), 1.0)
    return Supervised("bench", "binary", batch, batch, None, n_classes=2, task_names=["y"])


def build_ours(name: str, problem: Supervised, chains: int, **keys: Any) -> Callable[[int], Tensor]:
    """Our sampler after warm-up: number of draws -> draws [C, n, P]."""
    rng = Streams(1)
    keys |= {"chains": chains, "warmup": WARMUP, "thinning": 1, "mass": "dense"}
    inference = component("inference", name, **keys)
    model = component("model", "logistic_regression", **PRIOR).build(problem, rng)
    state = train(inference, model, problem, rng, WARMUP)

    def draw(n: int) -> Tensor:
        nonlocal state
        state = replace(state, kept=Trace(), stats=defaultdict(Trace))
        for _ in range(n):
            state, _ = inference.step(state, problem.train, rng)
        return inference.posterior(state).draws

    return draw


def evaluate_log_joint(problem: Supervised, n: int) -> tuple[Tensor, Tensor]:
    """Points θ [n, P] from a narrow prior, and our log joint [n]."""
    rng = Streams(3)
    model = component("model", "logistic_regression", **PRIOR).build(problem, rng)
    theta = 0.3 * model.sample_prior(n, rng.init)
    return theta, log_joint(model, theta, problem.train)


def join_moments(draws: Tensor) -> Tensor:
    """Coordinates and squares [C, n, 2P] of draws [C, n, P]."""
    return torch.cat([draws, draws.square()], -1).double()


def effective_size(draws: Tensor) -> float:
    """Minimum ESS over means and second moments of the coordinates of draws [C, n, P]."""
    both = join_moments(draws).numpy()
    return float(array_stats.ess(both, chain_axis=0, draw_axis=1, method="mean").min())


def build_peers(problem: Any, chains: int, dtype: str) -> dict[str, Any]:
    """BlackJAX's samplers of the same density, with several numbers of leapfrog steps for HMC."""
    from scripts.peers.blackjax_samplers import build_sampler, evaluate_log_density, set_precision

    set_precision(dtype)
    theta, ours = evaluate_log_joint(problem, 20)
    theirs = evaluate_log_density(problem, theta)
    difference = float(((ours - ours[0]) - (theirs - theirs[0])).abs().max())
    assert difference < (1e-8 if dtype == "float64" else 0.05), f"densities: {difference:.1e}"
    peers = {
        f"BlackJAX HMC, {n} steps": build_sampler("hmc", problem, chains, num_integration_steps=n)
        for n in (2, 3, 4, 6)
    }
    for in_turn in (False, True):
        name = f"BlackJAX NUTS, chains {'in turn' if in_turn else 'together'}"
        peers[name] = build_sampler("nuts", problem, chains, in_turn)
    return peers


def measure_precision(dtype: str, options: Namespace, report: Report) -> None:
    problem = draw_problem(getattr(torch, dtype))
    samplers = {
        "HMC": build_ours("hmc", problem, options.chains, trajectory="fixed", length=math.pi / 2),
        "ChEES": build_ours("hmc", problem, options.chains, trajectory="chees"),
        "NUTS": build_ours("nuts", problem, options.chains),
    }
    with suppress(AbsentPeer):
        samplers |= build_peers(problem, options.chains, dtype)
    sizes = defaultdict(list)
    moments = defaultdict(list)

    def inspect(name: str, draws: Tensor) -> None:
        sizes[name].append(effective_size(draws))
        moments[name].append(join_moments(draws).mean(1))

    ways = {name: partial(sampler, options.draws) for name, sampler in samplers.items()}
    seconds = report.time(ways, options.repeats, inspect=inspect)
    means = {name: torch.stack(values).mean(0) for name, values in moments.items()}
    report.assert_equal_means(means, most=5.0)  # chains are independent
    speeds = {name: np.array(sizes[name]) / seconds[name] for name in ways}
    print("min-ESS/s:", {name: round(float(np.median(speed))) for name, speed in speeds.items()})
    report.record(f"ChEES against NUTS of ours, {dtype}", speeds["ChEES"] / speeds["NUTS"])
    for ours, peer in PAIRS:
        modes = [speed for name, speed in speeds.items() if name.startswith(f"BlackJAX {peer}")]
        if modes:
            best = max(modes, key=np.median)
            report.record(f"{ours} against its {peer}, {dtype}", speeds[ours] / best)


def measure(options: Namespace, report: Report) -> None:
    """Effective draws per second of HMC and NUTS on logistic regression, against BlackJAX's.

    The score is min-ESS/s: the minimum effective sample size over means and second moments of all
    coordinates, divided by seconds; warm-up and compilation are not timed.  All have a dense mass
    matrix and default target acceptance.  BlackJAX's HMC has no rule for the number of leapfrog steps,
    so the best of several is the peer; its NUTS moves chains together or in turn, and the faster mode is
    the peer.  Moments must agree within their errors.

    The ratio for NUTS depends on the step size that BlackJAX adapts on one chain.  With 0.54 instead
    of our 0.73, ESS per draw of its 100 chains is 10 % higher in float32; with 0.48 in float64 some
    chains need 15 steps instead of 7, all wait for them, and the ratio is about 4.  In our draws the
    density, two matrix products and a pass over logistic functions, takes 60 % in float32 and 75 % in
    float64, and trees take the rest.  In float32 the ratio is about 1.35 with oneDNN products, which
    use AVX-512 as XLA does, and 1.02 to 1.25 with MKL, which does not on an AMD EPYC; a ratio of 1.5
    would require trees in half the time."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for dtype in options.dtype:
        measure_precision(dtype, options, report)
