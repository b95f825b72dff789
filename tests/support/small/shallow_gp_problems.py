"""Small problems with tasks of unequal size for Gaussian processes of one layer, and a check of
their gradients."""

from __future__ import annotations

import math

import torch
from support.runs.configured import F64, double, generator, normal
from torch.distributions import MultivariateNormal

from components.contracts.problems import Batch
from components.models.shallow_gp.labels import group_by_task
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

# exact comparisons: fixed kernel, hardly any jitter
PLAIN = {"hyperprior": None, "lengthscale": 1.5, "variance": 1.0, "jitter": 1e-12}
OWN = {"own_lengthscale": 2.0, "own_variance": 0.5}  # of lmc
SLFM = {"rank": 1, "diagonal": False, "own": "none"}


def problem(
    target: str = "real", n: int = 23, T: int = 3, D: int = 4, keep: float = 0.6, seed: int = 0
) -> Supervised:
    """T smooth functions of D inputs with noise. Missing labels are NaN (real) or −1, tasks have
    unequal sizes, and the last row has no label if any are missing."""
    g = generator(seed)
    x = normal(g, n + 11, D)
    mix = normal(g, T, 2)
    f = (
        torch.stack([torch.sin(1.5 * x[:, 0]) + 0.3 * x[:, 1], torch.cos(x[:, 1] * x[:, 2])]).T
        @ mix.T
    )
    y = f + 0.2 * normal(g, f.shape)
    mask = torch.rand(n, T, generator=g) < keep
    if keep < 1:
        mask[-1] = False
        mask[: n // 2, 0] = True  # the longest task
    classes = {"real": 1, "binary": 2, "classes": 3}[target]
    if target == "binary":
        y = (y > 0).long()
    if target == "classes":
        y = torch.bucketize(y, double([-0.5, 0.5]))
    labels = torch.where(mask, y[:n], torch.nan if target == "real" else -1)
    train = Batch(x[:n], labels if target == "real" else labels.long(), mask, 1.0)
    test = Batch(x[n:], y[n:], torch.ones_like(y[n:], dtype=torch.bool), 1.0)
    names = [f"task {t}" for t in range(T)]
    return Supervised("toy", target, train, test, None, classes, task_names=names)  # type: ignore[arg-type]


def streams(seed: int = 0) -> Streams:
    return Streams(seed, replicate=0, device="cpu")


def scatter_parameters(module: torch.nn.Module, scale: float = 0.3) -> None:
    """Move every parameter away from its initial value, so that tasks and inputs have different
    values."""
    g = generator(5)
    with torch.no_grad():
        for p in module.parameters():
            p += scale * torch.randn(p.shape, generator=g, dtype=p.dtype)


def kernel_parts(module) -> list:
    """The terms of a sum of kernels, or the single kernel."""
    return list(getattr(module.covariance, "parts", [module.covariance]))


def matern52(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    s = math.sqrt(5) * torch.cdist(x, z)
    return (1 + s + s * s / 3) * (-s).exp()


def covariance_literally(module, s, x, t, z) -> torch.Tensor:
    """Σ_q (Σ_r w_qsr w_qtr + δ_st κ_qs) κ_q(x, z) + δ_st σ_s² κ_s(x, z) of tasks s [n], t [m]."""
    same = s[:, None] == t
    total = torch.zeros(len(s), len(t), dtype=F64)
    for part in kernel_parts(module):
        rate = (-part.log_lengthscale).exp()
        if hasattr(part, "W"):
            kappa = 0 if part.log_kappa is None else part.log_kappa[s, None].exp()
            total += (part.W[s] @ part.W[t].T + same * kappa) * matern52(x * rate, z * rate)
        else:
            variance = part.log_variance[s, None].exp()
            total += same * variance * matern52(x * rate[s], z * rate[t])
    return total


@torch.no_grad()
def solve_exact_gp(module, p: Supervised) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log marginal likelihood, and predictive means and variances [B, T] of an exact GP."""
    row, t = p.train.mask.nonzero(as_tuple=True)
    x = p.train.x[row]
    y = p.train.y[row, t]
    noise = module.likelihood.noise_variance
    C = covariance_literally(module, t, x, t, x) + torch.diag(noise[t])
    s = torch.arange(p.n_tasks).repeat_interleave(len(p.test.x))
    z = p.test.x.repeat(p.n_tasks, 1)
    k = covariance_literally(module, t, x, s, z)
    prior = covariance_literally(module, s, z, s, z).diagonal()
    gain = torch.linalg.solve(C, k)
    moments = y @ gain, prior - (k * gain).sum(0) + noise[s]
    marginal = MultivariateNormal(torch.zeros_like(y), C).log_prob(y)
    return marginal, *(part.view(p.n_tasks, -1).T for part in moments)


def elbo_of(module, batch: Batch) -> torch.Tensor:
    """The bound of a batch, without samples."""
    return module.elbo(batch, None)["elbo"]


def predict(module, x: torch.Tensor):
    """The predictive at inputs, without samples."""
    return module.sample_predictive(x, 1, torch.Generator())


def gradient_error(module: torch.nn.Module, value, step: float = 1e-5) -> float:
    """Largest difference between autograd's and central differences' derivative of value() along
    random directions, one for each parameter, relative to the larger of 1 and the derivative."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(value(), parameters, allow_unused=True, materialize_grads=True)
    g = generator(1)
    worst = 0.0
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
        numeric = (ends[0] - ends[1]) / (2 * step)
        ours = float((gradient * along).sum())
        worst = max(worst, abs(numeric - ours) / max(1.0, abs(numeric)))
    return worst


def set_optimal_q(module: SparseGP, batch: Batch) -> None:
    """q(v) of a Gaussian likelihood: S = (I + A Σ⁻¹ Aᵀ)⁻¹, m = S A Σ⁻¹ (y − m(x)), A = L⁻¹ K_zx."""
    labels = group_by_task(batch)
    with torch.no_grad():
        Z = module.inducing
        z_task = module.inducing_task
        K = module.covariance.matrix(Z, z_task, Z, z_task)
        L = torch.linalg.cholesky(K + module.jitter * torch.eye(K.shape[-1], dtype=F64))
        A = torch.linalg.solve_triangular(
            L, module.covariance.matrix(Z, z_task, labels.x, labels.task), upper=False
        )
        precision = labels.mask / module.likelihood.noise_variance[labels.task]  # [T, n]
        residual = labels.y - module.mean(labels.x, labels.task)
        information = (A * precision[:, None]) @ A.mT
        vector = (A * (precision * residual)[:, None]).sum(-1)
        if len(Z) == 1:  # one group of inducing points for all tasks
            information = information.sum(0, keepdim=True)
            vector = vector.sum(0, keepdim=True)
        S = torch.linalg.inv(torch.eye(K.shape[-1], dtype=F64) + information)
        module.q_mean.copy_((S @ vector[..., None])[:, None, :, 0])
        module.q_tril.copy_(torch.linalg.cholesky(S)[:, None])
