"""Deep ensembles: several networks trained separately, with averaged predictions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from torch import nn

from components.contracts.capabilities import LogJoint, ThetaPredictive
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.inference.chains import init_for_training
from components.inference.log_joint import value_and_gradient
from components.inference.point.descent import DescentKeys
from components.maths.optimizers import Optimizer
from components.posteriors.particles import Particles
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class EnsembleState:
    """M networks in training, and their optimizer."""

    model: LogJoint = not_checkpointed()
    # "theta" [M, P], in a module because a checkpoint is loaded into the optimizer's tensor
    weights: nn.ParameterDict
    optimizer: Optimizer


@register("inference", "deep_ensemble")
class DeepEnsemble(Inference[LogJoint, Supervised, Batch, EnsembleState], DescentKeys):
    """Deep ensemble: M networks at posterior modes, with averaged predictive distributions.

    Each starts from its own initial weights.
    θ_m = argmin_θ −Σ_n log p(y_n|x_n, θ) − log p(θ) for m = 1 … M, by Adam or gradient
    descent with momentum on the minibatch estimate divided by N;
    p(y*|x*) = M⁻¹ Σ_m p(y*|x*, θ_m).  The members are one tensor θ [M, P].
    They use the same minibatches and are not trained against attacks: they differ only in their
    initial weights, the decisive factor according to Lakshminarayanan et al.  M = 1 is ``map``.

    Raises:
        NumericalError: a member becomes non-finite.

    Source: Lakshminarayanan, Pritzel and Blundell (2017), Algorithm 1.
    """

    requires = Requirements(
        kinds={"supervised"},
        capabilities={LogJoint},
        capabilities_by_kind={"supervised": {ThetaPredictive}},
    )

    members: PositiveInt

    def init(self, model: LogJoint, problem: Supervised, rng: Rng) -> EnsembleState:
        weights = nn.ParameterDict(
            {
                "theta": init_for_training(
                    model, problem, self.requires.batch_kind, self.members, rng
                ).theta
            }
        )
        optimizer = self.build_optimizer(weights.values())
        return EnsembleState(model=model, weights=weights, optimizer=optimizer)

    def step(self, state: EnsembleState, batch: Batch, rng: Rng) -> tuple[EnsembleState, Info]:
        theta = state.weights["theta"]  # [M, P]
        value, gradient = value_and_gradient(state.model, theta, batch)  # [M], [M, P]
        theta.grad = -gradient / (batch.scale * len(batch.x))
        state.optimizer.step()
        if not bool(torch.isfinite(theta.detach().sum())):
            raise NumericalError("members of the ensemble became non-finite", "lower inference.lr")
        return state, {"log_joint": value.mean(), "grad_norm": gradient.norm(dim=1).mean()}

    def posterior(self, state: EnsembleState) -> Particles:
        """The M current networks with equal weights."""
        assert isinstance(state.model, ThetaPredictive)
        return Particles(state.model, state.weights["theta"].detach().clone())
