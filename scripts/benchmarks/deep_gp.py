"""Benchmark of training steps of a multi-task deep Gaussian process, mMDGP."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

from components.contracts.problems import Batch
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import MultiTaskDGP
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Measured, Report, repeat_way
from scripts.benchmarks.workloads import component
from scripts.peers.gpflux_exchange import build_inputs, differences, open_peer
from scripts.peers.installed import own_interpreter

STEPS = 3  # steps per round
# rows, tasks
B = 500
T = 7
# jitter, relative to σ² in our layers and to 1 in GPflux: equal values, different gradients
JITTERS = {"float64": 1e-8, "float32": 1e-6}
# allowed relative differences of bounds and of gradients
WITHIN = {"float64": (1e-9, 1e-6), "float32": (1e-5, 1e-3)}
MODEL = {
    "inner_lengthscale": 10.0,
    "specific_lengthscale": 10.0,
    "inner_q_scale": 0.5,
    "top_lengthscale": 3.0,
    "top_q_scale": 0.5,
}


def build_mdgp(dtype: str) -> tuple[MultiTaskDGP, Batch]:
    """mMDGP and a batch of B rows with 21 inputs and a random label each."""
    rng = Streams(0)
    kind = getattr(torch, dtype)
    x = torch.randn(B, 21, generator=rng.data, dtype=kind)
    label = torch.randint(T, (B,), generator=rng.data)
    y = torch.randn(B, T, generator=rng.data, dtype=kind)
    batch = Batch(x, y, nn.functional.one_hot(label, T).bool(), 2.0)
    names = [str(t) for t in range(T)]
    problem = Supervised("bench", "real", batch, batch, None, task_names=names)
    return component("model", "mmdgp", jitter=JITTERS[dtype], **MODEL).build(problem, rng), batch


def compare(S: int, dtype: str, rounds: int, interpreter: Path, report: Report) -> None:
    ours, batch = build_mdgp(dtype)
    generator = torch.Generator().manual_seed(1)
    noise = ours.sample_layer_noise(batch.x, Layout.of(batch.mask, batch.x.dtype), S, generator)
    optimizer = torch.optim.Adam(ours.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        """Take steps with new noise; the layout of the batch is determined in every step, as in
        training."""
        optimizer.zero_grad(set_to_none=True)
        (-ours.elbo(batch, ours.draw_noise(batch, S, generator))["elbo"]).backward()
        optimizer.step()

    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "model.npz")
        gradients_path = Path(folder, "gradients.npz")
        np.savez(inputs, **build_inputs(ours, batch, noise))
        with open_peer(interpreter, inputs) as ask:
            ask(f"differentiate {gradients_path}")
            with np.load(gradients_path) as file:
                gradients = {key: torch.from_numpy(value) for key, value in file.items()}
            difference = differences(ours, batch, noise, gradients)
            assert max(np.divide(difference, WITHIN[dtype])) < 1, f"bound, gradients: {difference}"
            ways = {
                "ours": repeat_way(step, STEPS),
                "GPflux": lambda: Measured(ask(f"step {STEPS}")),
            }
            report.race(f"S={S}, {dtype}", ways, rounds)


def measure(options: Namespace, report: Report) -> None:
    """One training step of mMDGP against the same model from GPflux's layers, on TensorFlow.

        python -m scripts.benchmarks mdgp --samples 1 --dtypes float64 --rounds 30

    B = 500, M = 100, 10 + 7 inner processes, D = 21, T = 7.  GPflux has a separate environment (make
    bench-peers) and process, on one thread (scripts/peers/gpflux_mdgp.py).  It receives the rows, the
    parameters, the inducing inputs and the noise of one evaluation; its bound and gradients must equal
    ours.  Then both take steps with new noise: the bound, its gradient and a fused Adam.  Times are CPU
    seconds of each process.

    A ratio of 2 is not feasible in float64: on one core of an AMD EPYC (45 to 50 GFlop/s) matrix
    products, Cholesky factors and inverses take 19 of 29 ms of our step at S = 1 and 28 of 43 ms at
    S = 10, without blocks of zeros.  Half of GPflux's 49 and 71 ms would leave 5 and 7 ms for kernels,
    sums, noise, Adam and the graph, which take 10 and 15 ms."""
    interpreter = own_interpreter("GPflux")
    for dtype, S in product(options.dtypes, options.samples):
        compare(S, dtype, options.rounds, interpreter, report)
