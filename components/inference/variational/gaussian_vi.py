"""Gaussian variational inference of the parameters of any log joint, by any estimator of the
gradient of its bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Batch, Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, Inference, Info
from components.contracts.sequences import Series
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    NEEDS_TO_PREDICT,
    SAMPLER_OUTPUTS,
    ModelBatch,
    SampleableProblem,
    init_chains,
    init_for_training,
    training_data,
)
from components.inference.point.descent import DescentKeys
from components.inference.variational.ascent import TrainingState, ascend_parameters
from components.inference.variational.global_gaussian import GlobalGaussian, Noise, RowwiseLogJoint
from components.posteriors.variational import GaussianPosterior
from components.registry import register


@dataclass
class GaussianTrainingState(TrainingState[GlobalGaussian]):
    """q(θ) in training."""

    # ε [2, draws, P] of the returned posterior: always the same, so that scores move as q does
    base: Tensor
    model: LogJoint = rebuilt()
    train: Batch | Rows | Series | None = rebuilt()  # None: a density


@register("inference", "gaussian_vi")
class GaussianVI(
    Inference[LogJoint, SampleableProblem, ModelBatch, GaussianTrainingState], DescentKeys
):
    """Gaussian variational inference of a log joint: ascent of a lower bound on the evidence (Adam
    or gradient ascent).

        L(φ) = Σ_n E_q[log p(y_n | θ)] − KL(q(θ) ‖ p(θ)),   q(θ) = N(m, L Lᵀ),   φ ← φ + lr · Adam(ĝ / N),  E[ĝ] = ∇_φ L

    ĝ is what ``gradient`` estimates from a minibatch; L is diagonal or lower triangular, with log
    L_pp among φ; θ [P].  KL is in closed form where the model says that its prior is Gaussian,
    otherwise in part by the draws.  A density is its own log p(θ), without rows; a series is one
    row. ``noise: rows`` gives every row of a minibatch a draw θ of its own, as (B.6) prints it. The
    posterior is N(m, L Lᵀ) itself, and two chains of ``draws`` draws of it, which predict and
    estimate −L of the training rows (``nelbo``).  Info: the terms of the bound for the whole data
    set in nats (``elbo``), and the norm of ĝ / N.

    Raises:
        NumericalError: the log joint is not finite where q starts, or q has left the finite
            numbers.
        ConfigMismatchError: a pathwise gradient of a log joint that cannot be differentiated.

    Source: Boustati (2021), eq. (B.6); Titsias and Lázaro-Gredilla (2014), Algorithm 1."""

    requires = Requirements(
        kinds=frozenset({"density", "supervised", "sequence"}),
        capabilities=frozenset({"log_joint"}),
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    provides: ClassVar[frozenset[str]] = SAMPLER_OUTPUTS | {"analyses"}
    mixes: ClassVar[bool] = False  # independent draws of a fit
    folds_replicates: ClassVar[frozenset[str]] = frozenset()
    # keys that the gradient inherits from here
    inherited_keys: ClassVar[frozenset[str]] = frozenset({"n_samples"})
    makes: ClassVar[frozenset[str]] = frozenset(
        {
            "pathwise",
            "log_ratio",
            "normal_noise",
            "row_context",
            "path_derivative",
            "location_scale",
            "global_latent",
        }
    )

    def variational_capabilities(self) -> frozenset[str]:
        factored = self.covariance == "diagonal" and self.noise == "shared"
        return self.makes | ({"factored_guide"} if factored else set())

    gradient: Gradient
    n_samples: PositiveInt
    covariance: Literal["diagonal", "full"]
    noise: Noise
    start: Literal["zero", "drawn", "training"]
    initial_std: PositiveFloat
    draws: PositiveInt

    def family(self, target: RowwiseLogJoint, mean: Tensor) -> GlobalGaussian:
        """q where training begins, around ``mean`` [P]."""
        return GlobalGaussian(target, mean, self.initial_std, self.covariance == "full", self.noise)

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> GaussianTrainingState:
        if self.start == "training":
            mean = init_for_training(model, problem, self.requires.batch_kind, 1, rng).start[0]
        else:
            begin = (
                torch.zeros_like(model.sample_prior(1, rng.init)) if self.start == "zero" else None
            )
            mean = init_chains(
                model,
                problem,
                self.requires.batch_kind,
                1,
                rng,
                begin,
                "pathwise" in self.gradient.requires.capabilities,
            ).start[0]
        q = self.family(RowwiseLogJoint.of(model, problem), mean)
        base = torch.randn(
            INDEPENDENT_CHAINS,
            self.draws,
            len(mean),
            generator=rng.init,
            dtype=mean.dtype,
            device=rng.init.device,
        )
        optimizer = self.build_optimizer(q.parameters())
        return GaussianTrainingState(
            q,
            optimizer,
            self.gradient.init(q, rng),
            base.to(mean.device),
            model,
            training_data(problem),
        )

    def step(
        self, state: GaussianTrainingState, batch: ModelBatch, rng: Rng
    ) -> tuple[GaussianTrainingState, Info]:
        return ascend_parameters(state, self.gradient, batch, rng)

    def posterior(self, state: GaussianTrainingState) -> GaussianPosterior:
        with torch.no_grad():
            q = state.module
            model = state.model
            draws = q.transform(state.base)  # [2, N, P]
            elbo = (
                None
                if state.train is None
                else float(q.elbo(state.train, state.base.flatten(0, 1)))
            )
            mean = q.mean.clone()
            covariance = q.covariance
        return GaussianPosterior(
            draws,
            mean.expand(INDEPENDENT_CHAINS, -1),
            list(model.names),
            model,
            q_mean=mean,
            q_covariance=covariance,
            elbo=elbo,
        )
