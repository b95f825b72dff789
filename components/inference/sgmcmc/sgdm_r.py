"""Stochastic gradient descent with momentum and repulsion, as a sampler."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import NonNegativeFloat, model_validator
from torch import Tensor

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.sgmcmc.repulsion import Repulsion
from components.inference.step_response import Response
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class SGDMRState(Chains):
    momentum: Tensor  # m [L, P]


@register("inference", "sgdm_r")
class SGDMR(Repulsion[SGDMRState]):
    """Momentum with repulsion (SGDM+R): Hamiltonian flow with a kernel curl matrix.

    The flow moves all particles jointly, and their kernel forms its curl matrix:

    H(z, m) = Σ_l [−log π(z_l) + ½‖m_l‖²],  Q = (1/L) [[0, −K], [K, 0]],
    D = (C/L) [[0, 0], [0, I]];  z, m [L, P],

        m_i ← m_i + (ε_t/L) {Σ_l [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)] − C m_i}
                  + N(0, (2ε_t C/L) I)
        z_i ← z_i + (ε_t/L) Σ_l k(z_l, z_i) m_l   with the new m and the old K.

    Γ_i = Σ_j ∂Q_ij/∂(z, m)_j acts only on m, because K does not depend on m.  Algorithm 2.2 as
    printed has an attractive Γ in both lines, and −K m in the first, which with −K ∇H in the second
    drives particles away from the modes.  It also has no friction (C = 0): steps of finite size and
    minibatch noise then add energy that is never dissipated.  C > 0 with the matching noise
    dissipates it (Chen et al., 2014).  Without interaction, particles move with step ε/L.

    Raises:
        NumericalError: a particle becomes non-finite, or most particles start at the same point.

    Source: Gallego (2021), section 2.3.2, Algorithm 2.2; Ma et al. (2015), Theorem 1.
    """

    friction: NonNegativeFloat

    @model_validator(mode="after")
    def _require_damping(self) -> SGDMR:
        if self.step_size * self.friction >= self.chains:
            bound = f"chains/friction = {self.chains / self.friction:g}"
            raise ValueError(
                f"step_size: at {self.step_size:g} friction reverses momenta; use a value below {bound}"
            )
        return self

    def begin(self, chains: Chains, rng: Rng) -> SGDMRState:
        momentum = normal_like(chains.theta, rng.init)
        return SGDMRState(**vars(chains), momentum=momentum)

    def move(
        self, state: SGDMRState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[SGDMRState, Info]:
        theta = state.theta
        momentum = state.momentum
        R = state.replicates
        particles = self.interaction(theta, state.t, R)
        damping = eps * self.friction / self.chains
        noise = normal_like(theta, rng.noise)
        force = particles.average(gradient) + particles.correction()  # [L, P]
        # Algorithm 2.2
        momentum = (1 - damping) * momentum + eps * force + (2 * damping) ** 0.5 * noise
        theta = theta + eps * particles.average(momentum)  # Algorithm 2.2
        state = self.advance(state, theta, momentum=momentum)
        # 1 if the momenta have their stationary distribution
        temperature = mean_over_chains(momentum.square(), R)
        return state, {"temperature": temperature} | particles.facts()

    def response(self, state: SGDMRState) -> Response:
        eps = self.largest_step(state.t)
        particles = self.interaction(state.theta, state.t, state.replicates)
        limit = 2 * (2 - eps * self.friction / self.chains)
        return Response(
            lambda gradient: eps**2 * particles.average(particles.average(gradient)), limit
        )
