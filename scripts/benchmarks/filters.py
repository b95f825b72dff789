"""Bootstrap filters of stochastic volatility against the package particles, and many replicates.

    python -m scripts.benchmarks filters --particles 100000 --repeats 3

All filters resample systematically at every step; ours also records means, variances and quantiles.
100 replicates run together against one by one.  Log evidences must agree within Monte-Carlo error.
The peer asks for an older numpy than ours, with which it runs all the same."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

import torch

from scripts.benchmarks.harness import Report
from scripts.benchmarks.particle_runs import build_volatility, draw_returns, time_equal
from scripts.peers.installed import AbsentPeer
from scripts.peers.particles_filters import build_volatility as build_peer

AT_ONCE = "100 replicates at once"


def measure(options: Namespace, report: Report) -> None:
    y = draw_returns(options.times)
    one = build_volatility(y, 1000, 1, "float32")
    ways = {
        "at once": build_volatility(y, 1000, 100, "float32"),
        "one by one": lambda: torch.cat([one() for _ in range(100)]),
    }
    seconds = time_equal(ways, options.repeats, report)
    report.compare(AT_ONCE, seconds["at once"], seconds["one by one"])
    with suppress(AbsentPeer):
        for n in options.particles:
            ways = {dtype: build_volatility(y, n, 1, dtype) for dtype in ("float32", "float64")}
            ways["particles"] = build_peer(y, n)
            seconds = time_equal(ways, options.repeats, report)
            for dtype, goal in (("float32", 3.0), ("float64", 1.2)):
                report.goals[f"N = {n:,}, {dtype}"] = goal
                report.compare(f"N = {n:,}, {dtype}", seconds[dtype], seconds["particles"])
