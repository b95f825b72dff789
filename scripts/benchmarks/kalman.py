"""The Kalman filter of 100 series in one run, against filterpy's and dynamax's.

    python -m scripts.benchmarks kalman --series 20 --times 200    # Wiener velocity, T = 1,000

Ours twice: ``steps``, a run with inference=kalman, one observation after the other with all that it
records; and ``series``, ``filter_series``, which has all observations before it begins, as both
peers have.  filterpy filters one series after the other; dynamax's filter is mapped over the series
and compiled, which is not timed.  Means, covariances and log evidence must agree.

A step is slower than one of dynamax's scan by design: it sees one observation at a time, so that a
run can be evaluated, stopped and resumed at any time, and it appends five summaries of all series
to the record.  The five appends take 10 µs, some 15 calls of torch on small matrices take the
rest of 50 to 60 µs; dynamax's step takes 6 µs, with nothing between two of them.  Who has the
whole series calls ``filter_series``, which has dynamax's speed."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from itertools import product

from components.series.gaussian_filtering.kalman_series import filter_series
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from scripts.benchmarks.harness import Report, Way
from scripts.benchmarks.kalman_runs import assert_equal, build_steps
from scripts.benchmarks.workloads import load
from scripts.peers.installed import AbsentPeer
from scripts.peers.kalman_filters import build_dynamax, build_filterpy


def measure(options: Namespace, report: Report) -> None:
    problem = load("wiener_velocity", options.series, n_steps=options.times)
    model = LinearGaussianModule(problem.system)
    ways: dict[str, Way] = {
        "steps": build_steps(model, problem),
        "series": lambda: filter_series(model, problem.observations),
    }
    for name, build_peer in (("dynamax", build_dynamax), ("filterpy", build_filterpy)):
        with suppress(AbsentPeer):
            ways[name] = build_peer(model, problem)
    assert_equal(ways)
    seconds = report.time(ways, options.repeats, warmups=3, at_most={"filterpy": 3})
    report.compare("series against steps", seconds["series"], seconds["steps"])
    for ours, peer in product(("steps", "series"), set(ways) & {"filterpy", "dynamax"}):
        report.compare(f"{ours} against {peer}", seconds[ours], seconds[peer])
    report.facts |= {"series": options.series, "times": options.times}
