"""Training steps of a multi-task deep Gaussian process, mMDGP."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable

import gpytorch
import torch
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.models.deep_gp.build import TaskSpecificProcesses, build_shared_and_specific
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.peers.gpytorch_mdgp import JITTER, Peer, gradient_difference

B, M, T, P = 500, 100, 7, 10  # rows, inducing inputs, tasks with a process each, shared processes


def build_settings() -> DeepGPSettings:
    return DeepGPSettings(
        inner_dim=P, depth=1, tied=False, inner_kernel="matern52", inner_ard=False, inner_lengthscale=10.0,
        inner_variance=1.0, inner_mean="zero", inner_q_scale=0.5, inner_q_mean=1.0, top_kernel="matern52",
        top_lengthscale=3.0, top_variance=1.0, top_mean="zero", top_q_scale=0.5, pass_inputs=False, n_inducing=M,
        inducing="rows", inducing_by_task=True, noise_variance=0.1, link="probit", quadrature_nodes=20, jitter=JITTER,
    )  # fmt: skip


def build_mdgp(dtype: torch.dtype) -> tuple[MultiTaskDGP, Batch]:
    """mMDGP and a batch of B rows of 21 inputs, with one random label each."""
    rng = Streams(0)
    x = torch.randn(B, 21, generator=rng.data, dtype=dtype)
    label = torch.randint(T, (B,), generator=rng.data)
    y = torch.randn(B, T, generator=rng.data, dtype=dtype)
    batch = Batch(x, y, nn.functional.one_hot(label, T).bool(), 2.0)
    names = [str(t) for t in range(T)]
    problem = Supervised("bench", "real", batch, batch, None, task_names=names)
    specific = TaskSpecificProcesses(1, 10.0, 0.5)
    return build_shared_and_specific(build_settings(), problem, rng, P, specific), batch


def build_steps(bound: Callable[[], Tensor], module: nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        (-bound()).backward()
        optimizer.step()

    return step


def compare(S: int, repeats: int, dtype: torch.dtype, report: Report) -> None:
    ours, batch = build_mdgp(dtype)
    layout = Layout.of(batch.mask, dtype)
    noise = ours.sample_layer_noise(batch.x, layout, S, torch.Generator().manual_seed(1))
    peer = Peer(ours)
    generator = torch.Generator().manual_seed(2)

    def bound_of_ours() -> Tensor:
        """On new noise; the layout of the batch is found at every step, as in training."""
        return ours.elbo(batch, ours.draw_noise(batch, S, generator))["elbo"]

    def bound_of_peer() -> Tensor:
        return peer.elbo(batch, ours.sample_layer_noise(batch.x, layout, S, generator))

    with (
        gpytorch.settings.variational_cholesky_jitter(JITTER, JITTER, JITTER),
        gpytorch.settings.num_likelihood_samples(S),
    ):
        difference = gradient_difference(ours, peer, batch, noise)
        most = 1e-5 if dtype == torch.float64 else 0.05
        assert difference < most, f"gradients differ by {difference:.1e}"
        ways = {
            "ours": build_steps(bound_of_ours, ours),
            "GPyTorch": build_steps(bound_of_peer, peer),
        }
        report.race(f"S={S}", ways, repeats, warmups=3, clock=time.perf_counter)


def measure(options: Namespace, report: Report) -> None:
    """One training step of mMDGP against the same model from GPyTorch's DeepGP classes.

        python -m scripts.benchmarks mdgp --samples 1 --dtype float32

    B = 500, M = 100, 10 + 7 inner processes, D = 21, T = 7.  Both models get the same parameters, noise
    and padded rows of each task; their bounds and gradients must be equal.  A step is the bound, its
    gradient and fused Adam.  The peer's layout is found once, outside the clock."""
    dtype = getattr(torch, options.dtype)
    for S in options.samples:
        compare(S, options.repeats, dtype, report)
    report.facts |= {"dtype": options.dtype}
