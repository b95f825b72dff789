"""Common settings of single-layer Gaussian processes, and construction of their modules."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import BaseModel, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import VariationalLayers
from components.contracts.problems import Target
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.kernels import Shape
from components.models.deep_gp.build import find_centroids
from components.models.deep_gp.likelihoods import GaussianLabels, Link, make_likelihood
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.exact_cost import raise_if_too_large
from components.models.shallow_gp.labels import Labels, group_by_task
from components.models.shallow_gp.mean_function import Mean, MeanFunction
from components.models.shallow_gp.prior import Covariance, GPParts
from components.models.shallow_gp.sparse import CollapsedSparseGP, Inducing, SparseGP
from components.problems.supervised import Supervised


class StationarySettings(BaseModel):
    """Fields of igp and cgp only: their covariance function."""

    # matern12 | matern32 | matern52 | squared_exponential | linear | arc_cosine0 | arc_cosine1 |
    # arc_cosine2, Boustati (2021), eqs. (2.18) to (2.20); linear and arc_cosine: functions of
    # products of the inputs, 0 at x = 0 for orders above 0; linear_bias, arc_cosine0_bias,
    # arc_cosine1_bias, arc_cosine2_bias: with a random constant; A.1.2: matern52
    kernel: Shape
    # initial lengthscale, in units of the (standardised) inputs; > 0; Boustati (2021), A.1.2: 10
    lengthscale: PositiveFloat
    variance: PositiveFloat


class ShallowGPSettings(BaseModel):
    """Fields of igp, cgp and gpytorch_gp; defaults are in their YAML."""

    posterior: Literal["exact", "sparse"]
    # initial noise variance, in squared units of the labels; > 0; Boustati (2021), A.1.2: 1e-6
    noise_variance: PositiveFloat
    mean: Mean  # prior mean function: zero | constant | linear (coefficients are point estimates)
    # sparse: variational (q(u) is learnt, minibatches) | collapsed (q(u) in closed form, real labels,
    # all rows at each step; Titsias 2009, Boustati 2.4.2)
    bound: Literal["variational", "collapsed"]
    # s.d. τ > 0 of the normal prior of each log hyper-parameter around its initial value
    # (coefficients of the mean:
    # around 0); null: none, maximum likelihood, Boustati (2021), A.1.2
    hyperprior: PositiveFloat | None
    n_inducing: PositiveInt
    # sparse: initial inducing inputs: rows (random training rows, the task's own first) | kmeans
    inducing: Literal["rows", "kmeans"]
    # binary labels: P(y = 1) is Φ(f) (probit) or 1/(1 + e⁻ᶠ) (logit); log: counts,
    # y ~ Poisson(eᶠ), sparse only; Boustati (2021), 2.1.2.2 (log-Gaussian Cox process)
    link: Link
    # binary labels, and predictions of counts: Gauss–Hermite nodes; integer ≥ 1
    quadrature_nodes: PositiveInt
    # added to the diagonal of K (exact; in addition to the noise) or of K_zz (sparse) before a
    # Cholesky, in squared units of the labels; > 0
    jitter: PositiveFloat


class ShallowGPModel(Model[Supervised, ExactGP | SparseGP], ShallowGPSettings):
    """Single-layer Gaussian processes, exact (for real labels) or sparse."""

    requires = Requirements(kinds={"supervised"}, targets={"real", "binary", "classes"})
    offers_where = {VariationalLayers: "posterior=sparse model.bound=variational"}

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """Requirement of real labels by an exact posterior or a collapsed bound."""
        if target == "real":
            return None
        if self.posterior == "exact":
            return "posterior=exact", "posterior=sparse"
        return ("bound=collapsed", "bound=variational") if self.bound == "collapsed" else None

    def is_enabled(self, capability: type) -> bool:
        return self.posterior == "sparse" and self.bound == "variational"


def _inputs(own: Tensor, others: Tensor, n: int, method: str, generator: torch.Generator) -> Tensor:
    """n inducing inputs [n, D]: k-means centroids or random rows of a task's inputs, completed from
    other tasks."""

    def shuffle(x: Tensor) -> Tensor:
        return x[torch.randperm(len(x), generator=generator).to(x.device)]

    if method == "kmeans" and len(own) > n:
        return find_centroids(own, n, generator)
    return torch.cat([shuffle(own), shuffle(others)])[:n]


def _init_inducing(
    settings: ShallowGPSettings,
    problem: Supervised,
    labels: Labels,
    per_task: bool,
    generator: torch.Generator,
) -> Inducing:
    """``n_inducing`` (at most N) points for each task, or in total, distributed over the tasks in
    turn."""
    batch = problem.train
    T = problem.n_tasks
    M = min(settings.n_inducing, problem.n if per_task else labels.total)
    counts = [M if per_task else M // T + (t < M % T) for t in range(T)]
    is_observed = batch.mask.T
    z = [
        _inputs(
            batch.x[is_observed[t]],
            batch.x[~is_observed[t]],
            counts[t],
            settings.inducing,
            generator,
        )
        for t in range(T)
    ]  # [M_t, D]
    task = [torch.full((len(part),), t, device=part.device) for t, part in enumerate(z)]
    if per_task:
        return Inducing(torch.stack(z), torch.stack(task))
    return Inducing(torch.cat(z)[None], torch.cat(task)[None])


def make_parts(settings: ShallowGPSettings, problem: Supervised, covariance: Covariance) -> GPParts:
    """Prior and likelihood of a problem's tasks."""
    return GPParts(
        mean=MeanFunction(settings.mean, problem.n_tasks, problem.train.x),
        covariance=covariance,
        likelihood=make_likelihood(
            problem, settings.noise_variance, settings.link, settings.quadrature_nodes
        ),
        noise_variance=settings.noise_variance,
        hyperprior=settings.hyperprior,
        jitter=settings.jitter,
    )


def raise_unless_real(parts: GPParts, key: str = "model.posterior=exact") -> None:
    """Reject an exact posterior or a collapsed bound unless the labels are real.

    Raises:
        ConfigMismatchError: the labels are binary, classes or counts.
    """
    if not isinstance(parts.likelihood, GaussianLabels):
        raise ConfigMismatchError(
            f"{key}: requires real labels with Gaussian noise; use model.posterior=sparse "
            "model.bound=variational"
        )


def build_shallow_gp(
    settings: ShallowGPSettings, problem: Supervised, covariance: Covariance, rng: Rng
) -> ExactGP | SparseGP:
    """Exact or sparse Gaussian process of a problem's training labels.

    Raises:
        ConfigMismatchError: an exact posterior is requested for labels that are not real, or with
            matrices that do not fit in memory.
    """
    labels = group_by_task(problem.train)
    parts = make_parts(settings, problem, covariance)
    independent = covariance.independent
    if settings.posterior == "sparse":
        inducing = _init_inducing(settings, problem, labels, independent, rng.init)
        if settings.bound == "variational":
            return SparseGP(parts, inducing)
        raise_unless_real(parts, "model.bound=collapsed")
        return CollapsedSparseGP(parts, inducing, labels if independent else labels.together())
    raise_unless_real(parts)
    labels = labels if independent else labels.together()
    raise_if_too_large(labels, "model.posterior=exact", "model.posterior=sparse")
    return ExactGP(parts, labels)
