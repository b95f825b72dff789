"""Training steps of a multi-task deep Gaussian process, mMDGP."""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import gpytorch
import numpy as np
import torch
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.models.deep_gp.build import TaskSpecificProcesses, build_shared_and_specific
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Measured, Report, Way, repeated
from scripts.peers import process
from scripts.peers.gpflux_exchange import build_inputs, differences
from scripts.peers.gpytorch_mdgp import JITTER, Peer, gradient_difference
from scripts.peers.installed import own_interpreter

STEPS = 3  # in a round
# Jitter is of σ² here, of 1 in GPflux: equal, but not in its gradient; as small as precision
# allows.
JITTERS = {"float64": 1e-8, "float32": 1e-6}
# relative differences of bounds and of gradients
WITHIN = {"float64": (1e-9, 1e-6), "float32": (1e-5, 1e-3)}


def build_settings(M: int, P: int, jitter: float) -> DeepGPSettings:
    return DeepGPSettings(
        inner_dim=P, depth=1, tied=False, inner_kernel="matern52", inner_ard=False, inner_lengthscale=10.0,
        inner_variance=1.0, inner_mean="zero", inner_q_scale=0.5, inner_q_mean=1.0, top_kernel="matern52",
        top_lengthscale=3.0, top_variance=1.0, top_mean="zero", top_q_scale=0.5, pass_inputs=False, n_inducing=M,
        inducing="rows", inducing_by_task=True, noise_variance=0.1, link="probit", quadrature_nodes=20, jitter=jitter,
    )  # fmt: skip


class Sizes(NamedTuple):
    """Rows, inducing inputs, tasks with one process each, and samples; 10 shared processes."""

    B: int = 500
    M: int = 100
    T: int = 7
    S: int = 1


def build_mdgp(sizes: Sizes, dtype: torch.dtype, jitter: float) -> tuple[MultiTaskDGP, Batch]:
    """mMDGP and a batch of B rows of 21 inputs, with one random label each."""
    rng = Streams(0)
    x = torch.randn(sizes.B, 21, generator=rng.data, dtype=dtype)
    label = torch.randint(sizes.T, (sizes.B,), generator=rng.data)
    y = torch.randn(sizes.B, sizes.T, generator=rng.data, dtype=dtype)
    batch = Batch(x, y, nn.functional.one_hot(label, sizes.T).bool(), 2.0)
    names = [str(t) for t in range(sizes.T)]
    problem = Supervised("bench", "real", batch, batch, None, task_names=names)
    M = min(sizes.M, sizes.B)
    specific = TaskSpecificProcesses(1, 10.0, 0.5)
    model = build_shared_and_specific(build_settings(M, 10, jitter), problem, rng, 10, specific)
    return model, batch


def build_steps(bound: Callable[[], Tensor], module: nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        (-bound()).backward()
        optimizer.step()

    return step


def build_ours(model: MultiTaskDGP, batch: Batch, S: int, generator: torch.Generator) -> Way:
    """Training steps on new noise; the layout of the batch is found at every step, as in
    training."""
    return build_steps(
        lambda: model.elbo(batch, model.draw_noise(batch, S, generator))["elbo"], model
    )


def compare_with_gpytorch(S: int, repeats: int, dtype: torch.dtype, report: Report) -> None:
    ours, batch = build_mdgp(Sizes(S=S), dtype, JITTER)
    layout = Layout.of(batch.mask, dtype)
    noise = ours.sample_layer_noise(batch.x, layout, S, torch.Generator().manual_seed(1))
    peer = Peer(ours)
    generator = torch.Generator().manual_seed(2)

    def bound() -> Tensor:
        return peer.elbo(batch, ours.sample_layer_noise(batch.x, layout, S, generator))

    with (
        gpytorch.settings.variational_cholesky_jitter(JITTER, JITTER, JITTER),
        gpytorch.settings.num_likelihood_samples(S),
    ):
        difference = gradient_difference(ours, peer, batch, noise)
        most = 1e-5 if dtype == torch.float64 else 0.05
        assert difference < most, f"gradients differ by {difference:.1e}"
        ways = {"ours": build_ours(ours, batch, S, generator), "GPyTorch": build_steps(bound, peer)}
        report.race(f"S={S}", ways, repeats, warmups=3, clock=time.perf_counter)


def time_table(repeats: int, dtype: torch.dtype, report: Report) -> None:
    """Time per step with one of B, M, T and S changed."""
    values = {"B": (100, 250, 500, 1000, 2000), "M": (25, 50, 100, 200), "T": (1, 3, 7, 14)}
    values["S"] = (1, 5, 10, 20)
    for name, value in [(name, v) for name, numbers in values.items() for v in numbers]:
        sizes = Sizes(**{name: value})
        model, batch = build_mdgp(sizes, dtype, JITTER)
        step = build_ours(model, batch, sizes.S, torch.Generator().manual_seed(0))
        ways = {f"{name} = {value}": step}
        report.time(ways, repeats, warmups=2, clock=time.perf_counter)


def measure_gpytorch(options: Namespace, report: Report) -> None:
    """One training step of mMDGP against the same model from GPyTorch's DeepGP classes.

        python -m scripts.benchmarks mdgp --table      # also: time per step against B, M, T and S

    B = 500, M = 100, 10 + 7 inner processes, D = 21, T = 7.  Both models get the same parameters, noise
    and padded rows of each task; their bounds and gradients must be equal.  A step is the bound, its
    gradient and fused Adam.  The peer's layout is found once, outside the clock."""
    dtype = getattr(torch, options.dtype)
    for S in options.samples:
        compare_with_gpytorch(S, options.repeats, dtype, report)
    if options.table:
        time_table(max(5, options.repeats // 3), dtype, report)
    report.facts |= {"dtype": options.dtype}


def compare_with_gpflux(S: int, dtype: str, rounds: int, interpreter: Path, report: Report) -> None:
    kind = getattr(torch, dtype)
    ours, batch = build_mdgp(Sizes(S=S), kind, JITTERS[dtype])
    generator = torch.Generator().manual_seed(1)
    noise = ours.sample_layer_noise(batch.x, Layout.of(batch.mask, kind), S, generator)
    script = Path(process.__file__).parent / "gpflux_mdgp.py"
    with tempfile.TemporaryDirectory() as folder:
        inputs, gradients_path = Path(folder, "model.npz"), Path(folder, "gradients.npz")
        np.savez(inputs, **build_inputs(ours, batch, noise))
        with process.PeerProcess(interpreter, script, str(inputs)) as peer:
            peer.ask(f"differentiate {gradients_path}")
            with np.load(gradients_path) as file:
                gradients = {key: torch.from_numpy(value) for key, value in file.items()}
            found = differences(ours, batch, noise, gradients)
            assert max(np.divide(found, WITHIN[dtype])) < 1, f"bound and gradients: {found}"
            ways = {
                "ours": repeated(build_ours(ours, batch, S, generator), STEPS),
                "GPflux": lambda: Measured(peer.ask(f"step {STEPS}")),
            }
            report.race(f"S={S}, {dtype}", ways, rounds)


def measure_gpflux(options: Namespace, report: Report) -> None:
    """One training step of mMDGP against the same model from GPflux's layers, on TensorFlow.

        python -m scripts.benchmarks mdgp_gpflux --samples 1 --dtypes float64 --rounds 30

    GPflux has an environment of its own (make bench-peers) and a process of its own, on one thread
    (scripts/peers/gpflux_mdgp.py).  It gets the rows, the parameters, the inducing inputs and the noise
    of one evaluation; its bound and gradients must equal ours.  Then both take steps on new noise: the
    bound, its gradient and a fused Adam.  Seconds are of each process's own CPU.

    Why no ratio of 2 in float64: on one core of an AMD EPYC (45 to 50 GFlop/s) products of matrices,
    Cholesky factors and inverses take 19 of 29 ms of our step at S = 1 and 28 of 43 ms at S = 10, blocks
    of zeros left out.  Half of GPflux's 49 and 71 ms would leave 5 and 7 ms for kernels, sums, noise,
    Adam and the graph, which take 10 and 15 ms."""
    interpreter = own_interpreter("GPflux")
    for dtype, S in product(options.dtypes, options.samples):
        compare_with_gpflux(S, dtype, options.rounds, interpreter, report)
