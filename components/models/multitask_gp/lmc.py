"""Linear model of coregionalisation: several shared kernels and task-specific kernels."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator

from components.contracts.streams import Rng
from components.models.multitask_gp.covariance import OwnCovariance, SummedCovariance
from components.models.multitask_gp.prefix import PrefixGP
from components.models.shallow_gp.build import (
    ShallowGPModel,
    StationarySettings,
    build_shallow_gp,
    make_parts,
    raise_unless_real,
)
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.exact_cost import raise_if_too_large
from components.models.shallow_gp.labels import group_by_task
from components.models.shallow_gp.prior import CoregionalisedCovariance
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "lmc")
class LMC(ShallowGPModel, StationarySettings):
    """Linear model of coregionalisation (LMC): tasks mix shared processes and add a task-specific
    one.

    f_t(x) = Σ_q Σ_r w_qtr g_qr(x) + h_t(x), g_qr ~ GP(0, κ_q), h_t ~ GP(0, k_t):

        Cov[f_t(x), f_t'(x')] = Σ_q B_q,tt' κ_q(x, x') + δ_tt' σ_t² κ(Σ_d (x_d − x'_d)²/ℓ_td²)

    B_q = W_q W_qᵀ + diag(κ_q1 … κ_qT), W_q [T, R]; with lengthscales of each κ_q and of each
    task-specific kernel; y_t = f_t(x) + N(0, σ_t²).  With one kernel and ``own: none`` it is the
    ICM (cgp); with Q kernels, ``rank: 1``, ``diagonal: false`` and ``own: none`` the
    semi-parametric latent factor model (SLFM).  ``hyperprior``: as in cgp, for the scales of every
    part.

    ``prediction: sparse``: hyper-parameters from the exact marginal likelihood of ``learn_labels``
    labels, predictions from all N labels through M = ``prediction_pairs`` inducing pairs (x, t),
    O(n³) per step and O(N M²) once (``PrefixGP``).

    Source: Boustati (2021), eq. (3.16); Goovaerts (1997); Teh, Seeger and Jordan (2005);
    Álvarez, Rosasco and Lawrence (2012), section 4."""

    kernels: PositiveInt
    ard: Literal["none", "shared"]
    rank: PositiveInt
    diagonal: bool
    own: Literal["none", "ard"]
    own_lengthscale: PositiveFloat
    own_variance: PositiveFloat
    prediction: Literal["exact", "sparse"]
    learn_labels: PositiveInt
    prediction_pairs: PositiveInt

    @model_validator(mode="after")
    def _check_prediction(self) -> LMC:
        if self.prediction == "sparse" and self.posterior == "sparse":
            raise ValueError(
                "prediction: sparse requires the exact marginal likelihood; set "
                "model.posterior=exact, or model.prediction=exact for a posterior learnt with "
                "minibatches"
            )
        return self

    def build(self, problem: Supervised, rng: Rng) -> ExactGP | SparseGP:
        """``ExactGP``, ``PrefixGP`` or ``SparseGP`` on the training labels.

        Raises:
            ConfigMismatchError: the posterior is exact but labels are not real.
        """
        covariance = self._covariance(problem, rng)
        if self.prediction == "exact":
            return build_shallow_gp(self, problem, covariance, rng)
        parts = make_parts(self, problem, covariance)
        raise_unless_real(parts)
        labels = group_by_task(problem.train).together()
        # always the same length, so that a larger set contains a smaller one
        order = torch.randperm(labels.total, generator=rng.init).to(labels.x.device)
        learnt = labels.take(order[: self.learn_labels].sort().values)
        inducing = labels.take(order[: self.prediction_pairs].sort().values)
        raise_if_too_large(learnt, "model.prediction=sparse", "a smaller model.learn_labels")
        return PrefixGP(parts, learnt, labels, inducing)

    def _covariance(self, problem: Supervised, rng: Rng) -> SummedCovariance:
        """Σ_q B_q κ_q, plus the task-specific kernels, if any."""
        like = problem.train.x
        T = problem.n_tasks
        parts: list[CoregionalisedCovariance | OwnCovariance] = [
            CoregionalisedCovariance(
                shape=self.kernel,
                ard=self.ard == "shared",
                lengthscale=self.lengthscale,
                variance=self.variance / self.kernels,
                rank=self.rank,
                n_tasks=T,
                like=like,
                generator=rng.init,
                diagonal=self.diagonal,
            )
            for _ in range(self.kernels)
        ]
        if self.own == "ard":
            parts.append(
                OwnCovariance(self.kernel, "own", self.own_lengthscale, self.own_variance, T, like)
            )
        return SummedCovariance(parts)
