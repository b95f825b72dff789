"""Adam plus noise and repulsion, as a sampler."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.sgmcmc.preconditioner import Preconditioning
from components.inference.sgmcmc.repulsion import Repulsion
from components.inference.step_response import Response
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class AdamNRState(Chains):
    v: Tensor  # mean squared gradients [L, P]
    m: Tensor  # momenta [L, P]


@register("inference", "adam_nr")
class AdamNR(Repulsion[AdamNRState], Preconditioning):
    """Adam plus noise and repulsion (Adam+NR): repulsive momentum, a mass per particle.

    Each particle has the diagonal mass matrix of Adam:

        v_i ← β₂ v_i + (1 − β₂) (∇log π(z_i))²
        v̂_i = v_i / (1 − β₂ᵗ),   M_i = diag(√v̂_i) + λ I
        m_i ← β₁ m_i + (1 − β₁) {Σ_l [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)]
                                  + N(0, (2L/ε_t) M_i)}
        z_i ← z_i + (ε_t/L) Σ_l k(z_l, z_i) M_l⁻¹ m_l   with the new m and the old K

    z, m, v [L, P]; m = 0 at first.  With h² = ε (1 − β₁)/L and r = m h/(1 − β₁) this is one
    step of size h of the recipe of Ma et al. for (z, r),
    H = Σ_l [−log π(z_l) + ½ r_lᵀ M_l⁻¹ r_l],  Q = [[0, −K], [K, 0]],
    D = ((1 − β₁)/h) [[0, 0], [0, M]],  in which Γ acts only on r.  The paper has a product instead
    of the sum over particles, and no friction, which Adam's β₁ < 1 provides.  Without interaction,
    particles move as in ``adam_noise`` with step ε/L.  While M is fixed (``adapt``: burn_in, after
    burn-in) exp(−H) is invariant for a fixed ``bandwidth``, up to the error of the step; while M
    follows the chain it is not.

    Raises:
        NumericalError: a particle becomes non-finite, or most particles start at the same point.

    Source: Gallego (2021), section 2.3.2; Kingma & Ba (2014), Algorithm 1; Ma et al.
    (2015), Theorem 1.
    """

    beta1: ZeroToBelowOne
    beta2: ZeroToBelowOne

    def begin(self, chains: Chains, rng: Rng) -> AdamNRState:
        zero = torch.zeros_like(chains.theta)
        return AdamNRState(**vars(chains), v=zero, m=zero)

    def move(
        self, state: AdamNRState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[AdamNRState, Info]:
        theta = state.theta
        t = state.t
        L = self.chains
        R = state.replicates
        v, v_hat = self.update_squares(state.v, gradient, self.beta2, t)
        M = v_hat.sqrt() + self.damping  # diagonals of M_i, [L, P]
        particles = self.interaction(theta, t, R)
        noise = normal_like(theta, rng.noise)
        force = L * (particles.average(gradient) + particles.correction())  # [L, P]
        m = self.beta1 * state.m + (1 - self.beta1) * (force + (2 * L / eps * M).sqrt() * noise)
        theta = theta + eps * particles.average(m / M)
        state = self.advance(state, theta, v=v, m=m)
        return state, {"preconditioner": mean_over_chains(1 / M, R)} | particles.facts()

    def response(self, state: AdamNRState) -> Response:
        M = self.bias_corrected_squares(state.v, self.beta2, state.t).sqrt() + self.damping
        step = self.largest_step(state.t)
        particles = self.interaction(state.theta, state.t, state.replicates)
        step *= (1 - self.beta1) * self.chains
        return Response(
            lambda gradient: step * particles.average(particles.average(gradient) / M),
            limit=2 * (1 + self.beta1),
        )
