"""Gaussian variational inference for the parameters of any log joint, with any estimator of the
gradient of its bound."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import FactoredGuide, LogJoint, Pathwise
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.inference.chains import INDEPENDENT_CHAINS, SampleableProblem, init_for_training
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import (
    GAUSSIAN_CAPABILITIES,
    GlobalGaussian,
    Noise,
)
from components.inference.variational.guide_fit import (
    AscendedGuide,
    GlobalTrainingState,
    find_start,
)
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.variational import GaussianPosterior
from components.registry import register

GaussianTrainingState = GlobalTrainingState[GlobalGaussian]


@register("inference", "gaussian_vi")
class GaussianVI(AscendedGuide[GaussianTrainingState]):
    """Gaussian variational inference for a log joint: ascent of a lower bound on the evidence (Adam
    or gradient ascent).

        L(φ) = Σ_n E_q[log p(y_n | θ)] − KL(q(θ) ‖ p(θ)),   q(θ) = N(m, L Lᵀ),   φ ← φ + lr · Adam(ĝ / N),  E[ĝ] = ∇_φ L

    ``gradient`` estimates ĝ from a minibatch; L is diagonal or lower triangular, with log L_pp
    among φ; θ [P].  KL has a closed form if the model declares a Gaussian prior, otherwise part of
    it is estimated from the draws.  A density is its own log p(θ), without rows; a series is one
    row.  ``noise: rows`` uses a separate draw θ for every row of a minibatch, as in (B.6).  The
    posterior is N(m, L Lᵀ) itself, with two chains of ``draws`` draws for predictions and for the
    estimate of −L of the training rows (``nelbo``).  Info: the terms of the bound for the whole
    data set in nats (``elbo``), and the norm of ĝ / N.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.
        ConfigMismatchError: a pathwise gradient for a log joint that cannot be differentiated.

    Source: Boustati (2021), eq. (B.6); Titsias and Lázaro-Gredilla (2014), Algorithm 1."""

    requires = Requirements(
        kinds={"density", "supervised", "sequence"},
    )

    def variational_capabilities(self) -> Set[type]:
        is_factored = self.covariance == "diagonal" and self.noise == "shared"
        return GAUSSIAN_CAPABILITIES if is_factored else GAUSSIAN_CAPABILITIES - {FactoredGuide}

    covariance: Literal["diagonal", "full"]
    noise: Noise
    start: Literal["zero", "drawn", "training"]

    def family(self, target: RowwiseLogJoint, mean: Tensor) -> GlobalGaussian:
        """Initial q, around ``mean`` [P]."""
        return GlobalGaussian(target, mean, self.initial_std, self.covariance == "full", self.noise)

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> GaussianTrainingState:
        if self.start == "training":
            mean = init_for_training(model, problem, self.requires.batch_kind, 1, rng).start[0]
        else:
            needs_gradient = Pathwise in self.gradient.requires.capabilities
            batch_kind = self.requires.batch_kind
            mean = find_start(model, problem, batch_kind, rng, self.start, needs_gradient)
        q = self.family(RowwiseLogJoint.of(model, problem), mean)
        base = standard_normal((INDEPENDENT_CHAINS, self.draws, len(mean)), rng.init, mean)
        return self.begin(q, base, model, problem, rng)

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
