"""Effective draws per second of HMC and NUTS on logistic regression, against BlackJAX's.

The score is min-ESS/s: the least effective sample size over means and second moments of all
coordinates, divided by seconds; warm-up and compilation are not timed.  All have a dense mass
matrix and default target acceptance.  BlackJAX's HMC has no rule for the number of leapfrog steps:
of several the best is the peer.  Moments must agree within their errors.  ``chain_runs`` bounds NUTS."""

from __future__ import annotations

import math
import os
from argparse import Namespace
from collections import defaultdict
from contextlib import suppress
from functools import partial

import numpy as np
import torch
from torch import Tensor

from scripts.benchmarks import chain_runs as runs
from scripts.benchmarks.harness import Report
from scripts.peers.installed import AbsentPeer

PAIRS = (("HMC", "HMC"), ("HMC", "NUTS"), ("ChEES", "HMC"), ("NUTS", "NUTS"))


def measure_precision(dtype: str, options: Namespace, report: Report) -> None:
    problem = runs.draw_problem(getattr(torch, dtype))
    samplers = {
        "HMC": runs.build_ours(
            "hmc", problem, options.chains, trajectory="fixed", length=math.pi / 2
        ),
        "ChEES": runs.build_ours("hmc", problem, options.chains, trajectory="chees"),
        "NUTS": runs.build_ours("nuts", problem, options.chains),
    }
    with suppress(AbsentPeer):
        samplers |= runs.build_peers(problem, options.chains, dtype)
    sizes = defaultdict(list)
    moments = defaultdict(list)

    def inspect(name: str, draws: Tensor) -> None:
        sizes[name].append(runs.effective_size(draws))
        moments[name].append(runs.join_moments(draws).mean(1))

    ways = {name: partial(sampler, options.draws) for name, sampler in samplers.items()}
    seconds = report.time(ways, options.repeats, inspect=inspect)
    means = {name: torch.stack(values).mean(0) for name, values in moments.items()}
    report.assert_equal_means(means, most=5.0)  # chains are independent
    speeds = {name: np.array(sizes[name]) / seconds[name] for name in ways}
    print("min-ESS/s:", {name: round(float(np.median(speed))) for name, speed in speeds.items()})
    hmc = [name for name in speeds if name.startswith("BlackJAX HMC")]
    best = max(hmc, key=lambda name: float(np.median(speeds[name])), default=None)
    report.record(f"ChEES against NUTS of ours, {dtype}", speeds["ChEES"] / speeds["NUTS"])
    for ours, peer in PAIRS if best else ():
        speed = speeds[best if peer == "HMC" else "BlackJAX NUTS"]
        report.record(f"{ours} against its {peer}, {dtype}", speeds[ours] / speed)


def measure(options: Namespace, report: Report) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for dtype in options.dtype:
        measure_precision(dtype, options, report)
