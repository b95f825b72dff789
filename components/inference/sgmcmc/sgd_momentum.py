"""Momentum SGD as a sampler: Hamiltonian dynamics with occasional momentum resampling."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch
from components.inference.sgmcmc.control_variates import ControlledChains, ControlledSteps
from components.inference.step_response import Response
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class SGDMomentumState(ControlledChains):
    m: Tensor  # momenta at half steps [K, P]


@register("inference", "sgd_momentum")
class SGDMomentum(ControlledSteps[SGDMomentumState]):
    """Momentum SGD as a sampler, without friction or added noise, parallel chains.

        m_{t+½} = ξ_t + ½ ε_t ĝ(θ_t)        with probability 1/n, ξ_t ~ N(0, I)
        m_{t+½} = m_{t−½} + ε_t ĝ(θ_t)      otherwise
        θ_{t+1} = θ_t + ε_t m_{t+½}

    The recipe of Ma et al. with z = (θ, m), H = −log p(θ, y) + ½ mᵀm, D = 0, Q = [0 −I; I
    0] and Γ = 0; θ, m [K, P].  With D = 0 and no resampling the chain never leaves a level
    set of H.  Each chain therefore resamples its momentum every n = ``resample_every`` steps on
    average, at independent random times, because fixed times may resonate with the target.  This is
    the only source of randomness, while ``sghmc`` has friction and noise at every step.  m is
    stored at half steps (leapfrog); in the thesis both lines are evaluated at time t, an Euler step
    that gains energy each time.  The bias has order ε²: on N(0, σ²) the stationary variance is
    σ²/(1 − ε²/4σ²), and n = 1 is ``sgld`` with step ε²/2. Minibatch noise is not dissipated:
    gradient noise of variance V increases the temperature of the chain by a relative n ε² V,
    approximately.

    Raises:
        NumericalError: a chain becomes non-finite.

    Source: Gallego (2021), section 2.3.2; Bou-Rabee and Sanz-Serna (2017), section 2.
    """

    resample_every: PositiveInt

    def begin(self, chains: Chains, rng: Rng) -> SGDMomentumState:
        m = normal_like(chains.theta, rng.init)
        return SGDMomentumState(**vars(chains), m=m)

    def move(
        self, state: SGDMomentumState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[SGDMomentumState, Info]:
        theta = state.theta
        xi = normal_like(theta, rng.noise)
        anew = (
            torch.rand((len(theta), 1), generator=rng.noise, device=theta.device)
            < 1 / self.resample_every
        )
        m = torch.where(anew, xi + 0.5 * eps * gradient, state.m + eps * gradient)
        return self.advance(state, theta + eps * m, m=m), {}

    def response(self, state: SGDMomentumState) -> Response:
        eps = self.largest_step(state.t)
        return Response(lambda gradient: eps**2 * gradient, limit=4.0)
