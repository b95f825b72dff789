"""Per-row gradients of the deep GP against one backward pass for each row.

    python -m scripts.benchmarks gradients

The peer is the reference of Boustati (2021), section 4.3.2, for the cost of the partial-gradients
objective: the bound of all rows is recorded once, followed by a reverse pass for each of the B rows.
Both compute the gradients of all rows and of KL, and the value of the bound, with the same noise."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.gradients.by_parameter import flat
from components.gradients.pathwise.bound import row_gradients
from components.models.deep_gp.dgp import TwoLayers
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, noise_regression

# rows of airfoil; Boustati B.2.2
ROWS = 1503
INPUTS = 5
Gradients = tuple[Tensor, Tensor]  # ĝ_b [B, P] and the gradient of the bound [P]


def build_problem(B: int) -> tuple[TwoLayers, Batch, Tensor]:
    """Model with the defaults of its YAML, B rows and their noise."""
    rng = Streams(0)
    problem, _ = noise_regression(ROWS, INPUTS, B, rng)
    module = component("model", "dgp").build(problem, rng)
    with torch.no_grad():
        for p in module.parameters():  # moves away from the initial q
            p += 0.1 * torch.randn(p.shape, generator=rng.init, dtype=p.dtype)
    batch = next(iter(problem.batches("minibatch", rng, 0, 1)))[1]
    return module, batch, module.draw_noise(batch, 1, rng.noise)


def compute_ours(module: TwoLayers, batch: Batch, noise: Tensor) -> Gradients:
    rows, gradients, _ = row_gradients(module, batch, noise)
    return rows, flat(gradients, list(module.parameters()))


def compute_by_passes(module: TwoLayers, batch: Batch, noise: Tensor) -> Gradients:
    parameters = list(module.parameters())
    values = batch.scale * module.elbo_rows(batch, noise).mean(0)  # [B]

    def pass_of(value: Tensor) -> Tensor:
        return torch.cat(
            [g.flatten() for g in torch.autograd.grad(value, parameters, retain_graph=True)]
        )

    rows = torch.stack([pass_of(value) for value in values])
    return rows, rows.sum(0) - pass_of(module.kl())


def measure(options: Namespace, report: Report) -> None:
    for B in options.rows:
        parts = build_problem(B)
        ways = {"ours": partial(compute_ours, *parts), "passes": partial(compute_by_passes, *parts)}
        results = [way() for way in ways.values()]
        for what, ours, theirs in zip(("of rows", "of the bound"), *results, strict=True):
            report.assert_close(f"B = {B}: gradients {what}", ours, theirs, 1e-9)
        report.race(f"B={B}", ways, options.repeats, warmups=5)
