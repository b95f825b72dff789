"""Parallel stochastic gradient Langevin dynamics with repulsion between the particles."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch
from components.inference.sgmcmc.repulsion import Repulsion, check_kernel_particles
from components.inference.step_response import Response
from components.maths.particles.interactions import BlockInteraction, Interaction, within_blocks
from components.registry import register


@register("inference", "sgld_r")
class SGLDR(Repulsion[Chains]):
    """Parallel SGLD plus repulsion (SGLD+R): Stein's drift with noise to sample Π_l π(z_l).

    z_i ← z_i + (ε_t/L) Σ_l [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)] + η_i,
    η ~ N(0, (2ε_t/L) K ⊗ I),  z [L, P],  k(z, z′) = exp(−‖z − z′‖²/h).  The paper prints
    the second term with the sign of attraction ((2.2), (2.8)).  With the median heuristic h depends
    on the particles, which Γ neglects; the target is invariant only for a fixed ``bandwidth``, up
    to the error of the step.  Without interaction, particles move as in SGLD with step ε/L: to
    compare the two at equal noise per particle, use L times the step here.  From step
    ``repulsion_until`` on K is I.  With ``kernel_particles`` M each step uses the kernel within
    random blocks of M particles, with 1/M for 1/L, at cost O(L M) and with the same invariant
    density (``BlockInteraction``).

    Raises:
        NumericalError: a particle becomes non-finite, K has no Cholesky factor, or most particles
        start at the same point.

    Source: Gallego (2021), eq. (2.7), (2.8), Algorithm 2.1.
    """

    jitter: PositiveFloat
    kernel_particles: PositiveInt | None

    @model_validator(mode="after")
    def _check_blocks(self) -> SGLDR:
        check_kernel_particles(self.kernel_particles, self.chains)
        return self

    def begin(self, chains: Chains, rng: Rng) -> Chains:
        return chains

    def move(
        self, state: Chains, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[Chains, Info]:
        theta = state.theta
        t = state.t
        R = state.replicates
        particles: Interaction | BlockInteraction
        if self.kernel_particles is not None and self.repels(t):
            particles = within_blocks(theta, R, self.bandwidth, self.kernel_particles, rng.noise)
        else:
            particles = self.interaction(theta, t, R)
        drift = particles.average(gradient) + particles.correction()  # D_K ∇log π + Γ_K, [L, P]
        noise, jitter = particles.noise(rng.noise, self.jitter)
        theta = theta + eps * drift + (2 * eps) ** 0.5 * noise  # eq. (2.7)
        return self.advance(state, theta), particles.facts() | {"jitter": jitter}

    def response(self, state: Chains) -> Response:
        eps = self.largest_step(state.t)
        # with all particles; blocks have fewer and allow up to L/M times the step
        particles = self.interaction(state.theta, state.t, state.replicates)
        eps = eps * self.chains / (self.kernel_particles or self.chains)
        return Response(lambda gradient: eps * particles.average(gradient), limit=2.0)
