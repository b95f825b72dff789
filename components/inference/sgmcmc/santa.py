"""Stochastic annealing thermostats with an adaptive preconditioner: a sampler that anneals to an
optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.sgmcmc.control_variates import ControlledChains, ControlledSteps
from components.inference.sgmcmc.preconditioner import Preconditioning
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register

# |u| below which the correction's 1/u tends to 0, in units of the thermal scale (η/β)^½
FLOOR = 0.1


@dataclass(kw_only=True)
class SantaState(ControlledChains):
    u: Tensor  # momenta, √η p [K, P]
    alpha: Tensor  # thermostats, √η Ξ [K, P]
    v: Tensor  # mean squared gradients [K, P]


@register("inference", "santa")
class Santa(Superchains, ControlledSteps[SantaState], Preconditioning):
    """Santa, stochastic annealing thermostats with adaptive momentum, Euler scheme, parallel chains.

        v_t = σ v_{t−1} + (1 − σ) ĝ(θ_{t−1})²,   v̂_t = v_t / (1 − σᵗ),   G_t = (λ + √v̂_t)^−½
        exploration, t ≤ burn_in:
        α_t = α_{t−1} + u_{t−1}² − η/β_t
        u_t = (1 − α_t) u_{t−1} + η G_t ĝ(θ_{t−1}) + (η/β_t) (1 − G_{t−1}/G_t)/u_{t−1}
              + N(0, 2 η^{3/2} G_{t−1}/β_t)
        refinement:   α_t = min(max(α_{t−1}, √η C), 1),   u_t = (1 − α_t) u_{t−1} + η G_t ĝ(θ_{t−1})
        θ_t = θ_{t−1} + G_t u_t,   β_t = A tᵞ,   u_0 ~ N(0, η I),   α_0 = √η C

    These hold for each coordinate, θ, u, α [K, P]; η is ``step_size``, σ ``averaging``, λ
    ``damping``, C ``friction``, A ``coldness`` and γ ``annealing``.  With p = u/√η, Ξ = α/√η these
    are steps of size √η of

        dθ = G p dt,   dp = (G ∇log p(θ, y) − Ξ p + Γ/β) dt + N(0, 2G/β dt),   dΞ = (p² − 1/β) dt

    with Γ = ∂G/∂θ by a difference quotient.  While G is fixed (``adapt``: burn_in, without
    ``refine``) exp(−β {−log p(θ, y) + ½ pᵀp + ½ |Ξ − G|²}) is invariant as η → 0: with γ = 0
    and A = 1 Santa samples the posterior, like ``recipe`` with dynamics: thermostats.  With γ > 0
    it anneals, and refinement is momentum descent without noise to a mode.  While G adapts no
    density is invariant, and the paper drops (Ξ − G) ∂G/∂θ.  Differences from the paper: ĝ is the
    sum over all N rows, not their mean, so that η and λ are N times and C 1/√N times the published
    ones; v̂ replaces v; u/max(u², ``FLOOR``² η/β) replaces 1/u, which has no finite variance;
    refinement bounds the friction, which the paper allows to be negative, so that momenta grow.

    Raises:
        NumericalError: a chain becomes non-finite.

    Source: Chen et al. (2016), Algorithm 1, Euler scheme.
    """

    averaging: ZeroToBelowOne
    friction: PositiveFloat
    coldness: PositiveFloat
    annealing: NonNegativeFloat
    correction: bool
    refine: bool

    def begin(self, chains: Chains, rng: Rng) -> SantaState:
        theta = chains.theta
        root = self.step_size_at(0) ** 0.5
        return SantaState(
            **vars(chains),
            u=root * normal_like(theta, rng.init),
            alpha=torch.full_like(theta, root * self.friction),
            v=torch.zeros_like(theta),
        )

    def _scale(self, v_hat: Tensor) -> Tensor:
        """G [K, P]."""
        return (v_hat.sqrt() + self.damping).rsqrt()

    def move(
        self, state: SantaState, gradient: Tensor, eta: float, batch: ModelBatch, rng: Rng
    ) -> tuple[SantaState, Info]:
        theta = state.theta
        u = state.u
        alpha = state.alpha
        t = state.t
        v, v_hat = self.update_squares(state.v, gradient, self.averaging, t)
        G = self._scale(v_hat)
        xi = normal_like(theta, rng.noise)
        kick = eta * G * gradient
        heat = 0.0  # η/β
        if t < self.burn_in or not self.refine:
            heat = eta / (self.coldness * (t + 1) ** self.annealing)
            squares = self.bias_corrected_squares(state.v, self.averaging, t) if t else v_hat
            previous_G = self._scale(squares)
            alpha = alpha + u.square() - heat
            kick = kick + (2 * eta**0.5 * heat * previous_G).sqrt() * xi
            if self.correction:
                bound = FLOOR**2 * heat  # of u² in 1/u = u/u²
                kick = kick + heat * (1 - previous_G / G) * u / u.square().clamp_min(bound)
        else:
            alpha = alpha.clamp(eta**0.5 * self.friction, 1.0)
        u = (1 - alpha) * u + kick
        state = self.advance(state, theta + G * u, u=u, alpha=alpha, v=v)
        return state, {
            "preconditioner": mean_over_chains(G, state.replicates),
            "thermostat": mean_over_chains(alpha, state.replicates),
            "temperature": heat / eta,
        }
