"""Stochastic gradient Langevin dynamics with parallel chains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from pydantic import PositiveInt

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Response
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.chains import (
    NEEDS_TO_PREDICT,
    SAMPLER_OUTPUTS,
    Chains,
    ModelBatch,
    SampleableProblem,
    advance,
    init_chains,
    mean_over_chains,
    to_draws,
)
from components.inference.sgmcmc.control_variates import GradientEstimates, Reference
from components.inference.sgmcmc.step_sizes import StepSizes
from components.posteriors.draws import Draws
from components.registry import register


@dataclass(kw_only=True)
class SGLDState(Chains):
    control: Reference | None  # subtracted from gradient estimates; None: nothing


@register("inference", "sgld")
class SGLD(
    Inference[LogJoint, SampleableProblem, ModelBatch, SGLDState], StepSizes, GradientEstimates
):
    """Stochastic gradient Langevin dynamics, L parallel chains.

    θ_{t+1} = θ_t + ε_t ∇log p(θ_t, y) + N(0, 2 ε_t I), θ [L, P], in the convention of
    Gallego: Welling & Teh write the same step with ε_t/2 and N(0, ε_t I).  It is the recipe
    of Ma et al. with D = I, Q = 0 and Γ = 0.  On N(0, σ²) with a constant step the chain is
    autoregressive, and its stationary variance is σ² / (1 − ε/(2σ²)).  After ``burn_in``
    steps every ``thinning``-th state is kept.

    Raises:
        NumericalError: a chain leaves the finite numbers.

    Source: Gallego (2021), eq. (2.1); Welling & Teh (2011), eq. (4).
    """

    requires = Requirements(
        kinds=frozenset({"density", "supervised"}),
        capabilities=frozenset({"log_joint"}),
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    gradients_per_step: ClassVar[int | str | None] = 1
    provides: ClassVar[frozenset[str]] = SAMPLER_OUTPUTS
    folds_replicates: ClassVar[frozenset[str]] = frozenset({"density"})
    chains: PositiveInt

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> SGLDState:
        state = init_chains(model, problem, self.requires.batch_kind, self.chains, rng)
        return SGLDState(**vars(state), control=self.init_reference(model, state.theta, problem))

    def step(self, state: SGLDState, batch: ModelBatch, rng: Rng) -> tuple[SGLDState, Info]:
        model = state.model
        theta = state.theta
        R = state.replicates
        eps = self.step_size_at(state.t)
        control = self.refresh_reference(state.control, model, theta, state.t)
        value, gradient = self.estimate(control, model, theta, batch)  # [L], [L, P]
        noise = torch.randn(
            theta.shape, generator=rng.noise, device=theta.device, dtype=theta.dtype
        )
        # eq. (2.1)
        theta = torch.add(theta, gradient, alpha=eps).add_(noise, alpha=(2 * eps) ** 0.5)
        state = replace(advance(state, theta, self.burn_in, self.thinning), control=control)
        info = {
            "log_joint": mean_over_chains(value, R),
            "grad_norm": mean_over_chains(torch.linalg.vector_norm(gradient, dim=1), R),
            "step_size": eps,
            "draws": len(state.kept),
        }
        return state, info

    def response(self, state: SGLDState) -> Response:
        eps = self.largest_step(state.t)
        return Response(lambda gradient: eps * gradient, limit=2.0)

    def posterior(self, state: SGLDState) -> Draws:
        return to_draws(state)  # [L, N, P]
