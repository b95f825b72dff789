"""One step of a discrete variational auto-encoder against Pyro and Storchastic.

    python -m scripts.benchmarks dvae      # 784-200-200, 32 rows, 4 draws of each

Two layers of 200 binary variables, affine maps, a prior fixed at ½.  Ours are VarGrad, and
Reinforce with the other draws as baseline, the same estimator; whole steps of ``inference=vi``.
Pyro: ``SVI`` with ``Trace_ELBO`` (particles in one pass, or one by one as by default) and
``TraceGraph_ELBO`` with running-average baselines; without a goal, its estimator with torch's fused
Adam.  Storchastic: the score function with the other draws' mean as baseline.  Means of −ELBO and
of gradients along fixed directions must be equal within four standard errors."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

import torch

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component
from scripts.peers.auto_encoders import (
    BINARY_ROWS,
    S,
    build_binary_pyro,
    build_ours,
    build_storchastic,
    draw_estimates,
    draw_problem,
)
from scripts.peers.installed import AbsentPeer


def measure(options: Namespace, report: Report) -> None:
    rng = Streams(0)
    torch.manual_seed(0)
    problem = draw_problem(BINARY_ROWS, 0.1, rng)
    x = problem.train.x
    module = component("model", "dvae", units=200).build(problem, rng)
    ways = {
        name: build_ours(module, problem, component("gradient", name, n_samples=S), S)
        for name in ("vargrad", "reinforce")
    }
    with suppress(AbsentPeer):
        ways |= build_binary_pyro(module, x)
    with suppress(AbsentPeer):
        ways["Storchastic leave-one-out"] = build_storchastic(module, x)
    guide = list(module.down.parameters())
    rest = [p for p in module.parameters() if not any(p is q for q in guide)]
    report.assert_equal_means(draw_estimates(ways, module, [guide, rest], 50, options.draws))
    steps = {name: way.step for name, way in ways.items()}
    report.race("{}", steps, options.repeats, warmups=10)
