"""Seconds of the bootstrap filter where one of N, T and R grows, float32; no peer.

    python -m scripts.benchmarks filter_costs

A ratio is the time for a particle, step and replicate of the first size over that of the case."""

from __future__ import annotations

from argparse import Namespace

from scripts.benchmarks.harness import Report
from scripts.benchmarks.particle_runs import build_volatility, draw_returns


def measure(options: Namespace, report: Report) -> None:
    sizes = [(n, 100, 1) for n in options.particles]
    sizes += [(1000, 10, 1), (1000, 1000, 1), (1000, 100, 10), (1000, 100, 100)]
    units = []
    for n, times, replicates in sizes[: 3 if options.smoke else None]:
        case = f"N = {n:,}, T = {times:,}, R = {replicates}"
        run = build_volatility(draw_returns(times), n, replicates, "float32")
        units.append(report.time({case: run}, options.repeats)[case] / (n * times * replicates))
        report.compare(case, units[-1], units[0])
