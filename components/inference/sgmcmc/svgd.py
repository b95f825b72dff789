"""Stein variational gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.checks import Bias
from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.sgmcmc.repulsion import ParticleDynamics, check_kernel_particles
from components.inference.step_response import Response
from components.maths.particles.interactions import among, within_blocks
from components.registry import register


@dataclass(kw_only=True)
class SVGDState(Chains):
    squares: Tensor  # G, mean squares of φ [L, P]


@register("inference", "svgd")
class SVGD(ParticleDynamics[SVGDState]):
    """Stein variational gradient descent: noise-free steepest descent of KL.

    z_i ← z_i + ε_t φ_i,  φ_i = (1/L) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)], z
    [L, P]; Gallego's (2.4) has the second term with the wrong sign.  ``adagrad`` divides φ
    by √G, G ← β₂ G + (1 − β₂) φ² elementwise and G = φ² at first.  A single particle
    ascends the gradient to a mode.  L particles settle at a fixed point with less spread than the
    target (Gallego, Proposition 2.3); all stored states are then nearly equal, so ``burn_in`` may
    be steps − 1.  With ``kernel_particles`` M each step uses the kernel within random blocks of M
    particles, with 1/M for 1/L, at cost O(L M).

    Raises:
        NumericalError: a particle becomes non-finite, or most particles start at the same point.

    Source: Liu & Wang (2016), Algorithm 1; Gallego (2021), eq. (2.4).
    """

    mixes = False  # R̂ does not apply to particles at rest
    draw_bias = Bias("the number of its particles", most=0.3)
    scaling: Literal["none", "adagrad"]
    beta2: ZeroToBelowOne
    stability: PositiveFloat
    kernel_particles: PositiveInt | None

    @model_validator(mode="after")
    def _check_blocks(self) -> SVGD:
        check_kernel_particles(self.kernel_particles, self.chains)
        return self

    def begin(self, chains: Chains, rng: Rng) -> SVGDState:
        return SVGDState(**vars(chains), squares=torch.zeros_like(chains.theta))

    def move(
        self, state: SVGDState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[SVGDState, Info]:
        theta = state.theta
        squares = state.squares
        R = state.replicates
        particles = (
            among(theta, R, self.bandwidth)
            if self.kernel_particles is None
            else within_blocks(theta, R, self.bandwidth, self.kernel_particles, rng.noise)
        )
        direction = phi = particles.average(gradient) + particles.correction()  # eq. (2.4), [L, P]
        if self.scaling == "adagrad":
            squares = (
                phi.square()
                if state.t == 0
                else self.beta2 * squares + (1 - self.beta2) * phi.square()
            )
            direction = phi / (self.stability + squares.sqrt())
        state = self.advance(state, theta + eps * direction, squares=squares)
        direction_norm = mean_over_chains(phi.norm(dim=1), R)
        return state, {"direction_norm": direction_norm} | particles.facts()

    def response(self, state: SVGDState) -> Response:
        # with all particles; blocks have fewer and allow up to L/M times the step
        eps = self.largest_step(state.t) * self.chains / (self.kernel_particles or self.chains)
        particles = among(state.theta, state.replicates, self.bandwidth)
        scale = (
            state.squares.sqrt() + self.stability
            if self.scaling == "adagrad"
            else torch.ones_like(state.theta)
        )
        return Response(lambda gradient: eps * particles.average(gradient) / scale, limit=2.0)
