"""Small problems of tasks of unequal size, for Gaussian processes of one layer, and how their
gradients are checked."""

from __future__ import annotations

import torch
from support.runs.configured import F64, generator

from components.contracts.problems import Batch
from components.models.shallow_gp.labels import group_by_task
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from runner.execution.rng import Streams


def problem(
    target: str = "real", n: int = 23, T: int = 3, D: int = 4, keep: float = 0.6, seed: int = 0
) -> Supervised:
    """T smooth functions of D inputs with noise; missing labels hold NaN (real) or −1, tasks are of
    unequal size and the last row has no label at all when any are missing."""
    g = generator(seed)
    x = torch.randn(n + 11, D, generator=g, dtype=F64)
    mix = torch.randn(T, 2, generator=g, dtype=F64)
    f = (
        torch.stack([torch.sin(1.5 * x[:, 0]) + 0.3 * x[:, 1], torch.cos(x[:, 1] * x[:, 2])]).T
        @ mix.T
    )
    y = f + 0.2 * torch.randn(f.shape, generator=g, dtype=F64)
    mask = torch.rand(n, T, generator=g) < keep
    if keep < 1:
        mask[-1] = False
        mask[: n // 2, 0] = True  # the longest task
    classes = {"real": 1, "binary": 2, "classes": 3}[target]
    if target == "binary":
        y = (y > 0).long()
    if target == "classes":
        y = torch.bucketize(y, torch.tensor([-0.5, 0.5], dtype=F64))
    seen = torch.where(mask, y[:n], torch.nan if target == "real" else -1)
    train = Batch(x[:n], seen if target == "real" else seen.long(), mask, 1.0)
    test = Batch(x[n:], y[n:], torch.ones_like(y[n:], dtype=torch.bool), 1.0)
    names = [f"task {t}" for t in range(T)]
    return Supervised("toy", target, train, test, None, classes, task_names=names)  # type: ignore[arg-type]


def streams(seed: int = 0) -> Streams:
    return Streams(seed, replicate=0, device="cpu")


def scatter_parameters(module: torch.nn.Module, seed: int = 5, scale: float = 0.3) -> None:
    """Moves every parameter off its initial value, so that tasks and inputs have values of their
    own."""
    g = generator(seed)
    with torch.no_grad():
        for p in module.parameters():
            p += scale * torch.randn(p.shape, generator=g, dtype=p.dtype)


def gradient_error(module: torch.nn.Module, value, step: float = 1e-5) -> float:
    """Largest difference between autograd's and central differences' derivative of value() along
    random directions, one for each parameter, relative to the larger of 1 and the derivative."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(value(), parameters, allow_unused=True, materialize_grads=True)
    g, worst = generator(1), 0.0
    for p, gradient in zip(parameters, gradients, strict=True):
        along = torch.randn(p.shape, generator=g, dtype=p.dtype)
        if along.ndim >= 2 and along.shape[-1] == along.shape[-2]:
            along = along.tril()
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                p += sign * step * along
                ends.append(float(value()))
                p -= sign * step * along
        numeric, ours = (ends[0] - ends[1]) / (2 * step), float((gradient * along).sum())
        worst = max(worst, abs(numeric - ours) / max(1.0, abs(numeric)))
    return worst


def set_optimal_q(module: SparseGP, batch: Batch) -> None:
    """q(v) of a Gaussian likelihood: S = (I + A Σ⁻¹ Aᵀ)⁻¹, m = S A Σ⁻¹ (y − m(x)), A = L⁻¹ K_zx."""
    labels = group_by_task(batch)
    with torch.no_grad():
        Z, z_task = module.inducing, module.inducing_task
        K = module.covariance.matrix(Z, z_task, Z, z_task)
        L = torch.linalg.cholesky(K + module.jitter * torch.eye(K.shape[-1], dtype=F64))
        A = torch.linalg.solve_triangular(
            L, module.covariance.matrix(Z, z_task, labels.x, labels.task), upper=False
        )
        precision = labels.mask / module.likelihood.noise_variance[labels.task]  # [T, n]
        residual = labels.y - module.mean(labels.x, labels.task)
        information = (A * precision[:, None]) @ A.mT
        vector = (A * (precision * residual)[:, None]).sum(-1)
        if len(Z) == 1:  # one group of inducing points serves every task
            information, vector = information.sum(0, keepdim=True), vector.sum(0, keepdim=True)
        S = torch.linalg.inv(torch.eye(K.shape[-1], dtype=F64) + information)
        module.q_mean.copy_((S @ vector[..., None])[:, None, :, 0])
        module.q_tril.copy_(torch.linalg.cholesky(S)[:, None])
