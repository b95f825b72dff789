"""Construction of the modules of the deep GP family from settings and training data, bottom to
top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.requirements import SUPERVISED
from components.contracts.roles import Model
from components.contracts.streams import Rng, seed_from
from components.maths.exponential.standard_draws import standard_normal
from components.models.deep_gp.layer import GPLayer, InitialKernel
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.levels import (
    CoregionalisedLevel,
    Features,
    Level,
    SharedSpecificProcesses,
    join_features,
)
from components.models.deep_gp.likelihoods import make_likelihood
from components.models.deep_gp.module import MultiTaskDGP
from components.models.deep_gp.settings import DeepGPSettings
from components.models.deep_gp.tops import CoregionalisedTop, IndependentTop, Top
from components.problems.supervised import Supervised


class MultiTaskDGPModel(Model[Supervised, MultiTaskDGP], DeepGPSettings):
    """Deep GP of several tasks, with a variational posterior at inducing inputs."""

    requires = SUPERVISED


@dataclass(frozen=True)
class TaskSpecificProcesses:
    """Task-specific processes: their number per task at each level, and their initial kernel."""

    dim: int
    lengthscale: float | None
    variance: float


def choose_inputs(x: Tensor, M: int, method: str, generator: torch.Generator) -> Tensor:
    """min(M, N) inducing inputs: rows of x [N, D] drawn without replacement, or k-means
    centroids."""
    M = min(M, x.shape[0])
    if method == "rows":
        return x[torch.randperm(x.shape[0], generator=generator)[:M].to(x.device)]
    return find_centroids(x, M, generator)


def find_centroids(x: Tensor, M: int, generator: torch.Generator) -> Tensor:
    """Centroids of k-means [M, D] of rows x [N, D]."""
    from sklearn.cluster import KMeans  # slow to import and rarely needed

    means = KMeans(M, n_init=1, random_state=seed_from(generator)).fit(x.cpu().double().numpy())
    return torch.as_tensor(means.cluster_centers_).to(x)


def choose_initial_inputs(
    problem: Supervised, settings: DeepGPSettings, generator: torch.Generator
) -> tuple[Tensor, Layout]:
    """Initial inducing inputs: M for the shared processes, then m for each task.

    The layout gives the rows of a task.  With ``inducing_by_task`` the inputs of a task are chosen
    among its own rows and, if these are too few, among the others; m = M, or M distributed over the
    T tasks, m = max(⌊M/T⌋, 1).
    """
    x = problem.train.x
    shared = choose_inputs(x, settings.n_inducing, settings.inducing, generator)
    M = shared.shape[0]
    if not settings.inducing_by_task:
        rows = torch.arange(M, device=x.device).expand(problem.n_tasks, M)
        return shared, Layout(problem.n_tasks, M, rows, None, None)
    m = max(M // problem.n_tasks, 1) if settings.inducing_by_task == "dealt" else M
    task_inputs = []
    for observed in problem.train.mask.T:
        mine = choose_inputs(x[observed], m, settings.inducing, generator)
        task_inputs.append(
            torch.cat([mine, choose_inputs(x[~observed], m - mine.shape[0], "rows", generator)])
        )
    rows = M + torch.arange(problem.n_tasks * m, device=x.device).view(-1, m)
    return torch.cat([shared, *task_inputs]), Layout(problem.n_tasks, m, rows, None, None)


def make_linear_map(x: Tensor, n_outputs: int) -> Tensor:
    """Weights [D, Q] of a fixed linear mean function: the identity if D = Q, the first Q principal
    axes if D > Q (signs as on the CPU for any device), the identity with zero columns if D < Q.

    Source: Salimbeni and Deisenroth (2017), section 3.
    """
    D = x.shape[1]
    if n_outputs < D:
        axes = torch.linalg.svd((x - x.mean(0)).cpu(), full_matrices=False)[2]
        return axes[:n_outputs].T.to(x.device)
    return torch.eye(D, n_outputs, dtype=x.dtype, device=x.device)


class _Builder:
    """Shared state for the construction of a model's layers."""

    def __init__(self, settings: DeepGPSettings, problem: Supervised, rng: Rng):
        self.settings = settings
        self.problem = problem
        self.generator = rng.init
        self.T = problem.n_tasks
        self.likelihood = make_likelihood(
            problem, settings.noise_variance, settings.link, settings.quadrature_nodes
        )
        # [M + T · m or M, D]
        self.inputs, self.layout = choose_initial_inputs(problem, settings, rng.init)
        self.M, self.D = min(settings.n_inducing, problem.train.x.shape[0]), self.inputs.shape[1]
        self.features: Features = (self.inputs.unsqueeze(0), None)
        # at depth 0 the top layer always gets the inputs
        self.pass_inputs = settings.pass_inputs and settings.depth > 0

    def inner(
        self,
        name: str,
        Z: Tensor,
        n_groups: int,
        dim: int,
        lengthscale: float | None,
        variance: float,
        weight: Tensor,
    ) -> GPLayer:
        """``dim`` processes for each leading index of Z [n_groups, M, D], in separate groups unless
        they are tied."""
        s = self.settings
        M, D = Z.shape[1:]
        per_group = dim if s.tied else 1
        if not s.tied:
            Z = Z.repeat_interleave(dim, 0)
        weight = weight.unsqueeze(0) if s.tied else weight.T.unsqueeze(-1)  # [1, D, Q] or [Q, D, 1]
        q_mean = standard_normal((Z.shape[0], per_group, M), self.generator, Z)
        return GPLayer(
            name,
            Z,
            per_group,
            kernel=InitialKernel(s.inner_kernel, s.inner_ard, lengthscale or D**0.5, variance),
            q_mean=s.inner_q_mean * q_mean,
            q_scale=s.inner_q_scale,
            mean_weight=weight.repeat(n_groups, 1, 1) if s.inner_mean == "linear" else None,
            jitter=s.jitter,
        )

    def by_task(self) -> Tensor:
        """Λ^t at each task's initial inputs, [T, m, D]."""
        return join_features(self.features, self.layout)[0]

    def in_turn(self, Z: Tensor) -> Tensor:
        """One set for all tasks from Z [T, m, D], [1, min(M, T · m), D], taken from the tasks in
        turn; if M are distributed over the tasks, all of them."""
        if Z.shape[1] < self.M:
            return Z.flatten(0, 1)[: self.M].unsqueeze(0)
        places = torch.arange(self.M, device=Z.device)
        return Z[places % self.T, places].unsqueeze(0)

    def top(self, n_groups: int, n_outputs: int) -> GPLayer:
        """The top layer, starting from Λ^t at the initial inputs; one group per task, or one for
        all."""
        s = self.settings
        Z = self.by_task()
        if self.pass_inputs:
            Z = torch.cat([Z, self.inputs[self.layout.rows]], -1)
        Z = Z if n_groups == self.T else self.in_turn(Z)
        return GPLayer(
            "top",
            Z.contiguous(),
            n_outputs,
            kernel=InitialKernel(
                s.top_kernel, True, s.top_lengthscale or Z.shape[-1] ** 0.5, s.top_variance
            ),
            q_mean=None,
            q_scale=s.top_q_scale,
            learn_mean=s.top_mean == "linear",
            jitter=s.jitter,
        )

    def module(self, levels: Sequence[Level], top: Top, names: list[str]) -> MultiTaskDGP:
        s = self.settings
        inputs = [f"x{i + 1}" for i in range(self.D)]
        names = (names if s.depth else inputs) + (inputs if self.pass_inputs else [])
        return MultiTaskDGP(levels, top, self.likelihood, self.T, self.pass_inputs, names)


def build_shared_and_specific(
    settings: DeepGPSettings,
    problem: Supervised,
    rng: Rng,
    n_shared: int,
    specific: TaskSpecificProcesses | None,
) -> MultiTaskDGP:
    """Levels of shared and task-specific processes under one ARD GP per task: sMDGP, mMDGP,
    iDGP."""
    b = _Builder(settings, problem, rng)
    levels = []
    for depth in range(1, settings.depth + 1):
        g = b.features[0]
        shared = task_layer = None
        if n_shared:
            assert g is not None
            weight = make_linear_map(problem.train.x if depth == 1 else g[0], n_shared)
            length = settings.inner_lengthscale
            variance = settings.inner_variance
            shared = b.inner(f"shared {depth}", g[:, : b.M], 1, n_shared, length, variance, weight)
        if specific is not None:
            Z = b.by_task()
            # Above the first level, a task's features pass through the task-specific mean; shared
            # ones use their own layer.
            own_features = torch.eye(Z.shape[-1], dtype=Z.dtype, device=Z.device)[
                :, -specific.dim :
            ]
            weight = make_linear_map(problem.train.x, specific.dim) if depth == 1 else own_features
            name = f"specific {depth}"
            length = specific.lengthscale
            variance = specific.variance
            task_layer = b.inner(name, Z, b.T, specific.dim, length, variance, weight)
        level = SharedSpecificProcesses(shared, task_layer, b.T)
        b.features = level.propagate(b.features, b.layout, rng.init)
        levels.append(level)
    names = [f"g{i + 1}" for i in range(n_shared)] + [
        f"h{j + 1}" for j in range(specific.dim if specific else 0)
    ]
    return b.module(levels, IndependentTop(b.top(b.T, b.likelihood.outputs)), names)


def build_coregionalised(
    settings: DeepGPSettings, problem: Supervised, rng: Rng, n_base: int, rank: int
) -> MultiTaskDGP:
    """Linearly mixed inner processes under one coregionalised GP: cMDGP."""
    b = _Builder(settings, problem, rng)
    levels = []
    for depth in range(1, settings.depth + 1):
        Z = b.inputs[None, : b.M] if depth == 1 else b.in_turn(b.by_task())
        weight = make_linear_map(problem.train.x if depth == 1 else Z[0], n_base)
        base = b.inner(
            f"shared {depth}",
            Z,
            1,
            n_base,
            settings.inner_lengthscale,
            settings.inner_variance,
            weight,
        )
        K = settings.inner_dim
        # The identity plus small noise: initially all tasks mix almost equally, as in sMDGP.
        noise = standard_normal((b.T, K, n_base), rng.init, b.inputs)
        mixing = torch.eye(K, n_base).to(noise) + 0.1 * noise
        level = CoregionalisedLevel(base, mixing, depth == 1)
        b.features = level.propagate(b.features, b.layout, rng.init)
        levels.append(level)
    C = b.likelihood.outputs
    A = standard_normal((b.T, C, rank), rng.init, b.inputs) / rank**0.5
    names = [f"λ{i + 1}" for i in range(settings.inner_dim)]
    return b.module(levels, CoregionalisedTop(b.top(1, rank), A), names)
