"""Adam with added noise, as a sampler."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.sgmcmc.control_variates import ControlledChains, ControlledSteps
from components.inference.sgmcmc.preconditioner import Preconditioning
from components.inference.step_response import Response
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class AdamNoiseState(ControlledChains):
    v: Tensor  # mean squared gradients [K, P]
    m: Tensor  # momenta [K, P]


@register("inference", "adam_noise")
class AdamNoise(Superchains, ControlledSteps[AdamNoiseState], Preconditioning):
    """Adam plus noise: Langevin dynamics with Adam's momentum and preconditioner, parallel chains.

        v_t = β₂ v_{t−1} + (1 − β₂) ĝ(θ_t)²,   v̂_t = v_t / (1 − β₂ᵗ),   M_t = √v̂_t + λ
        m_{t+1} = β₁ m_t + (1 − β₁) (ĝ(θ_t) + N(0, (2/ε_t) M_t))
        θ_{t+1} = θ_t + ε_t m_{t+1} / M_t

    coordinate by coordinate, θ, m [K, P], m_0 = 0.  With h = √(ε (1 − β₁)), γ = (1 − β₁)/h and r =
    m/γ this is one step of size h of the recipe of Ma et al. for z = (θ, r), H = −log p(θ, y) + ½
    rᵀ M⁻¹ r, D = [0 0; 0 γM], Q = [0 −I; I 0] and Γ = 0, θ updated with the new r.  Q and, up to
    the printed signs, H are Gallego's; β₁ < 1 acts as friction and requires the added noise.  β₁ =
    0 is ``psgld`` without Γ.  The step has a bias of first order in ε.  While M follows the chain,
    ∇H is biased too, because it omits ½ ∇_θ (log|M| + rᵀ M⁻¹ r) as if M were constant: π is
    invariant (whole data, ε → 0) only after ``adapt``: burn_in has fixed M.  Gradient noise of
    variance V increases the temperature of the chain by a relative ε V / 2M.

    Adam's bias correction of m is omitted because it matters only during burn-in.  Raises
    NumericalError if a chain becomes non-finite.

    Source: Gallego (2021), section 2.3.2; Kingma and Ba (2014), Algorithm 1; Ma et al. (2015), eq.
    (5)."""

    beta1: ZeroToBelowOne
    beta2: ZeroToBelowOne

    def begin(self, chains: Chains, rng: Rng) -> AdamNoiseState:
        zero = torch.zeros_like(chains.theta)
        return AdamNoiseState(**vars(chains), v=zero, m=zero)

    def move(
        self, state: AdamNoiseState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[AdamNoiseState, Info]:
        v, v_hat = self.update_squares(state.v, gradient, self.beta2, state.t)
        M = v_hat.sqrt() + self.damping  # [K, P]
        noise = normal_like(state.theta, rng.noise)
        m = self.beta1 * state.m + (1 - self.beta1) * (gradient + (2 / eps * M).sqrt() * noise)
        theta = state.theta + eps * m / M
        return self.advance(state, theta, v=v, m=m), {
            "preconditioner": mean_over_chains(1 / M, state.replicates)
        }

    def response(self, state: AdamNoiseState) -> Response:
        M = self.bias_corrected_squares(state.v, self.beta2, state.t).sqrt() + self.damping
        step = self.largest_step(state.t) * (1 - self.beta1)
        return Response(lambda gradient: step * gradient / M, limit=2 * (1 + self.beta1))
