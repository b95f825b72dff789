"""Stochastic gradient Langevin dynamics with parallel chains."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch
from components.inference.sgmcmc.control_variates import ControlledChains, ControlledSteps
from components.inference.step_response import Response
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@register("inference", "sgld")
class SGLD(Superchains, ControlledSteps[ControlledChains]):
    """Stochastic gradient Langevin dynamics, L parallel chains.

    θ_{t+1} = θ_t + ε_t ∇log p(θ_t, y) + N(0, 2 ε_t I), θ [L, P], in the convention of
    Gallego: Welling & Teh write the same step with ε_t/2 and N(0, ε_t I).  It is the recipe
    of Ma et al. with D = I, Q = 0 and Γ = 0.  On N(0, σ²) with a constant step the chain is
    autoregressive, and its stationary variance is σ² / (1 − ε/(2σ²)).  After ``burn_in`` steps
    every ``thinning``-th state is stored.

    Raises:
        NumericalError: a chain becomes non-finite.

    Source: Gallego (2021), eq. (2.1); Welling & Teh (2011), eq. (4).
    """

    def begin(self, chains: Chains, rng: Rng) -> ControlledChains:
        return ControlledChains(**vars(chains))

    def move(
        self, state: ControlledChains, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[ControlledChains, Info]:
        noise = normal_like(state.theta, rng.noise)
        # eq. (2.1)
        theta = torch.add(state.theta, gradient, alpha=eps).add_(noise, alpha=(2 * eps) ** 0.5)
        return self.advance(state, theta), {}

    def response(self, state: ControlledChains) -> Response:
        eps = self.largest_step(state.t)
        return Response(lambda gradient: eps * gradient, limit=2.0)
