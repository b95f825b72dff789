"""Multi-task deep GP with its top layer integrated out."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import Shape
from components.models.deep_gp.build import choose_inputs, make_linear_map
from components.models.deep_gp.collapsed import CollapsedMDGP, InnerFunctions
from components.models.deep_gp.likelihoods import GaussianLabels
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.exact_cost import raise_if_too_large
from components.models.shallow_gp.labels import group_by_task
from components.models.shallow_gp.mean_function import MeanFunction
from components.models.shallow_gp.prior import (
    CoregionalisedCovariance,
    Covariance,
    GPParts,
    IndependentCovariance,
)
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "collapsed_mdgp")
class CollapsedMultiTaskDGP(Model[Supervised, CollapsedMDGP]):
    """Multi-task deep GP with an exact top layer over shared inner functions.

    The top layer consists of independent or coregionalised GPs.

        λ(x) = (g_1(x) … g_I(x) [, x]),
        f^t ~ GP(0, σ_t² κ(Σ_i ω_i^t (λ_i − λ'_i)²)) or ICM,
        y^t = f^t(λ(x)) + N(0, σ_t²)

    With inner functions of identity mean and small variance it starts as the exact GP of each task
    (igp), or as the ICM (cgp), and learns a warping of the inputs from all tasks. It needs real
    labels and uses the whole training set at each step: O(Σ_t N_t³) with independent tops, O(N³)
    with a coregionalised one.

    Source: Boustati (2021), section 3.3.2, eqs. (3.13) to (3.15), with the top layer
    integrated out as in Titsias (2009).
    """

    requires = Requirements(kinds={"supervised"}, targets={"real"})

    inner_dim: PositiveInt | None
    inner_kernel: Shape
    inner_lengthscale: PositiveFloat
    inner_variance: PositiveFloat
    inner_mean: Literal["zero", "linear"]
    inner_q_scale: PositiveFloat
    inner_q_mean: NonNegativeFloat
    n_inducing: PositiveInt
    inducing: Literal["rows", "kmeans"]
    pass_inputs: bool
    top: Literal["independent", "coregionalised"]
    top_kernel: Shape
    top_lengthscale: PositiveFloat
    top_variance: PositiveFloat
    rank: PositiveInt
    noise_variance: PositiveFloat
    hyperprior: PositiveFloat | None
    jitter: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> CollapsedMDGP:
        """Build the module with the training labels of a problem.

        Raises:
            ConfigMismatchError: the matrices for its labels exceed the available memory."""
        x = problem.train.x
        T = problem.n_tasks
        by_task = group_by_task(problem.train)
        labels = by_task if self.top == "independent" else by_task.together()
        key = f"model={self.name} model.top={self.top}"
        instead = "model=mmdgp (+experiment=sarcos_mmdgp_all)"
        raise_if_too_large(labels, key, instead, by_task)
        Z = choose_inputs(x, self.n_inducing, self.inducing, rng.init)
        dim = self.inner_dim or x.shape[1]
        draw = standard_normal((dim, Z.shape[0]), rng.init, x)
        inner = InnerFunctions(
            Z,
            dim,
            shape=self.inner_kernel,
            lengthscale=self.inner_lengthscale,
            variance=self.inner_variance,
            q_mean=self.inner_q_mean * draw,
            q_scale=self.inner_q_scale,
            mean_weight=make_linear_map(x, dim) if self.inner_mean == "linear" else None,
            jitter=self.jitter,
        )
        likelihood = GaussianLabels(T, self.noise_variance, x)
        like = x.new_zeros(1, dim + (x.shape[1] if self.pass_inputs else 0))
        shape = self.top_kernel
        length = self.top_lengthscale
        variance = self.top_variance
        if self.top == "independent":
            covariance: Covariance = IndependentCovariance(shape, "own", length, variance, T, like)
        else:
            covariance = CoregionalisedCovariance(
                shape=shape,
                ard=True,
                lengthscale=length,
                variance=variance,
                rank=self.rank,
                n_tasks=T,
                like=like,
                generator=rng.init,
            )
        mean = MeanFunction("zero", T, like)
        parts = GPParts(
            mean=mean,
            covariance=covariance,
            likelihood=likelihood,
            noise_variance=self.noise_variance,
            hyperprior=self.hyperprior,
            jitter=self.jitter,
        )
        top = ExactGP(parts, labels)
        return CollapsedMDGP(inner, top, self.pass_inputs, self.hyperprior)
