"""Benchmarks of steps of variational auto-encoders."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

import torch

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component
from scripts.peers.auto_encoders import (
    BINARY_ROWS,
    ROWS,
    S,
    build_binary_pyro,
    build_ours,
    build_pyro,
    build_storchastic,
    draw_estimates,
    draw_problem,
)
from scripts.peers.installed import AbsentPeer


def measure_gaussian(options: Namespace, report: Report) -> None:
    """One step of a variational auto-encoder against Pyro's SVI.

        python -m scripts.benchmarks vae       # 784-200-200-10, 100 rows, one draw of each

    Ours are complete steps of ``inference=vi`` with the reparameterised gradient and KL in closed form.
    Pyro: ``SVI`` with ``TraceMeanField_ELBO``, the same bound with the same closed form, and
    ``Trace_ELBO``, which also estimates log q by draws; with Pyro's Adam and default validation.  All
    share the networks of one module.  Means of −ELBO and of gradients along a fixed direction must
    agree within four standard errors."""
    rng = Streams(0)
    torch.manual_seed(0)
    problem = draw_problem(ROWS, 0.13, rng)
    keys = {"widths": [200, 200], "guide": "separate", "scale": "softplus"}
    module = component("model", "vae", **keys).build(problem, rng)
    ours = build_ours(module, problem, component("gradient", "reparam", n_samples=1))
    ways = {"ours": ours, **build_pyro(module, problem.train.x)}
    parts = [list(module.parameters())]
    report.assert_equal_means(draw_estimates(ways, module, parts, 30, options.draws))
    steps = {name: way.step for name, way in ways.items()}
    report.race("{}", steps, options.repeats, warmups=10)


def measure_binary(options: Namespace, report: Report) -> None:
    """One step of a discrete variational auto-encoder against Pyro and Storchastic.

        python -m scripts.benchmarks dvae      # 784-200-200, 32 rows, 4 draws of each

    Two layers of 200 binary variables, affine maps, a prior fixed at ½.  Ours are VarGrad and the
    equivalent Reinforce with the other draws as baseline; complete steps of ``inference=vi``.
    Pyro: ``SVI`` with ``Trace_ELBO`` (particles in one pass, or sequentially by default) and
    ``TraceGraph_ELBO`` with running-average baselines; without a goal, its estimator with torch's fused
    Adam.  Storchastic: the score function with the mean of the other draws as baseline.  Means of −ELBO
    and of gradients along fixed directions must agree within four standard errors."""
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
