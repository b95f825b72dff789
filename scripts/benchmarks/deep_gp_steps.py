"""mMDGP of ours and its training steps, for the benchmarks of deep Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.models.deep_gp.build import TaskSpecificProcesses, build_shared_and_specific
from components.models.deep_gp.module import MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Way


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
