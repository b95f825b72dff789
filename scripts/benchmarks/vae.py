"""One step of a variational auto-encoder against Pyro's SVI.

    python -m scripts.benchmarks vae       # 784-200-200-10, 100 rows, one draw of each

Ours are whole steps of ``inference=vi`` with the reparameterised gradient and KL in closed form.
Pyro: ``SVI`` with ``TraceMeanField_ELBO``, the same bound with the same closed form, and
``Trace_ELBO``, which draws log q too; Pyro's own Adam, validation on as Pyro has it.  All share the
networks of one module.  Means of −ELBO and of gradients along a fixed direction must be equal
within four standard errors."""

from __future__ import annotations

from argparse import Namespace

import torch

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component
from scripts.peers.auto_encoders import (
    ROWS,
    build_ours,
    build_pyro,
    draw_estimates,
    draw_problem,
)


def measure(options: Namespace, report: Report) -> None:
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
