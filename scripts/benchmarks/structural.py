"""Gibbs sweeps of a structural series against bsts-causalimpact (Rust) and NumPyro's NUTS.

Draws a second with spike and slab of one chain and of 32 together against the Rust sampler's;
effective draws a second of the level's σ, and draws a second, of a level without columns, against
NUTS.  Means of both σ of the level, and of β with three columns always in, must agree within 4
Monte-Carlo errors.  With candidates the Rust sampler's speed is compared, not its posterior: its
Bayes factor has 1/(1 + g) in place of g/(1 + g).  Last, a fit of 4,000 draws of a level, five
channels and seven regressors."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial

import numpy as np

from scripts.benchmarks import structural_runs as runs
from scripts.benchmarks.harness import Report
from scripts.peers.installed import AbsentPeer
from scripts.peers.structural_samplers import Array, build_nuts, build_rust

ONE = "draws of one chain against bsts-causalimpact"
MANY = "draws of 32 chains against bsts-causalimpact"
EFFECTIVE, DRAWS = "ESS of level σ against NUTS", "draws against NUTS"
FIT = "4,000 draws with channels in 3 s"


def compare_with_rust(n: int, repeats: int, report: Report) -> None:
    bare, few, wide = (runs.draw_series(columns) for columns in (0, 3, 12))
    level = build_rust(*bare, 1)
    level(1000)
    runs.assert_equal("bsts-causalimpact", runs.draw_level(5 * n), level(5 * n)[500:])
    ours, theirs = runs.build_ours(*few, 1, None)(2 * n), build_rust(*few, 1, 3.0)(2 * n)
    runs.assert_equal("bsts-causalimpact, columns", ours[500:, 0, 1:], theirs[500:, 1:])
    for case, chains in ((ONE, 1), (MANY, 32)):
        draws = n if chains == 1 else max(runs.BLOCK, n // 32 // runs.BLOCK * runs.BLOCK)
        ways = {"ours": runs.build_ours(*wide, chains), "Rust": build_rust(*wide, chains)}
        for way in ways.values():
            way(100)
        ways = {name: partial(way, draws) for name, way in ways.items()}
        seconds = report.time(ways, repeats, warmups=0)
        report.compare(case, seconds["ours"], seconds["Rust"])


def compare_with_nuts(n: int, repeats: int, report: Report) -> None:
    ours, nuts = runs.build_ours(*runs.draw_series(0), 1), build_nuts(runs.draw_series(0)[0])
    ours(1000)
    theirs = np.concatenate([nuts(1000) for _ in range(4)])
    runs.assert_equal("NUTS", runs.draw_level(5 * n), theirs)
    sizes: dict[str, list[float]] = {"ours": [], "NUTS": []}

    def inspect(name: str, draws: Array) -> None:
        sizes[name].append(runs.bulk_ess(draws[:, 0, 1] if name == "ours" else draws[:, 1]))

    ways = {"ours": partial(ours, n), "NUTS": partial(nuts, 1000)}
    seconds = report.time(ways, repeats, warmups=0, inspect=inspect)
    per_second = {name: np.array(sizes[name]) / seconds[name] for name in ways}
    report.record(EFFECTIVE, per_second["ours"] / per_second["NUTS"])
    report.record(DRAWS, n / seconds["ours"] / (1000 / seconds["NUTS"]))


def measure(options: Namespace, report: Report) -> None:
    for compare in (compare_with_rust, compare_with_nuts):
        with suppress(AbsentPeer):
            compare(options.draws, options.repeats, report)
    report.record(FIT, 3 / report.time({FIT: runs.fit}, options.repeats)[FIT])
