"""Stochastic gradient Langevin dynamics with parallel chains."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Response
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, SampleableProblem, noise_like
from components.inference.sgmcmc.control_variates import GradientEstimates, Reference
from components.inference.sgmcmc.dynamics import GradientDynamics
from components.inference.superchains import Superchains
from components.registry import register


@dataclass(kw_only=True)
class SGLDState(Chains):
    control: Reference | None  # subtracted from gradient estimates; None: nothing


@register("inference", "sgld")
class SGLD(Superchains, GradientDynamics[SGLDState], GradientEstimates):
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

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> SGLDState:
        state = self.start_chains(model, problem, rng)
        return SGLDState(**vars(state), control=self.init_reference(model, state.theta, problem))

    def step(self, state: SGLDState, batch: ModelBatch, rng: Rng) -> tuple[SGLDState, Info]:
        theta = state.theta
        eps = self.step_size_at(state.t)
        # log joints [L] and gradients [L, P]
        control, value, gradient = self.refresh_and_estimate(
            state.control, state.model, theta, batch, state.t
        )
        noise = noise_like(theta, rng.noise)
        # eq. (2.1)
        theta = torch.add(theta, gradient, alpha=eps).add_(noise, alpha=(2 * eps) ** 0.5)
        state = self.advance(state, theta, control=control)
        info = self.describe_step(state, value, gradient, eps)
        return state, info

    def response(self, state: SGLDState) -> Response:
        eps = self.largest_step(state.t)
        return Response(lambda gradient: eps * gradient, limit=2.0)
