"""Stein variational gradient descent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

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
    mean_over_chains,
    to_draws,
)
from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.repulsion import Bandwidth, among, init_scattered
from components.inference.sgmcmc.step_sizes import StepSizes
from components.posteriors.draws import Draws
from components.registry import register


@dataclass(kw_only=True)
class SVGDState(Chains):
    squares: Tensor  # G, mean squares of φ [L, P]


@register("inference", "svgd")
class SVGD(Inference[LogJoint, SampleableProblem, ModelBatch, SVGDState], StepSizes):
    """Stein variational gradient descent: noise-free steepest descent of KL.

    z_i ← z_i + ε_t φ_i,  φ_i = (1/L) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)], z
    [L, P]; Gallego's (2.4) has the second term with the wrong sign.  ``adagrad`` divides φ
    by √G, G ← β₂ G + (1 − β₂) φ² elementwise and G = φ² at first.  A single particle
    ascends the gradient to a mode.  L particles settle at a fixed point with a spread below
    the target's (Gallego, Proposition 2.3); all kept states are then nearly the same, so
    ``burn_in`` may be steps − 1.

    Raises:
        NumericalError: a particle leaves the finite numbers, or most particles start at
            one place.

    Source: Liu & Wang (2016), Algorithm 1; Gallego (2021), eq. (2.4).
    """

    requires = Requirements(
        kinds=frozenset({"density", "supervised"}),
        capabilities=frozenset({"log_joint"}),
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    gradients_per_step: ClassVar[int | str | None] = 1
    provides: ClassVar[frozenset[str]] = SAMPLER_OUTPUTS
    folds_replicates: ClassVar[frozenset[str]] = frozenset({"density"})
    mixes: ClassVar[bool] = False  # particles at rest have no R̂
    chains: PositiveInt
    bandwidth: Bandwidth
    scaling: Literal["none", "adagrad"]
    beta2: Annotated[float, Field(ge=0, lt=1)]
    stability: PositiveFloat

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> SVGDState:
        state = init_scattered(
            model, problem, self.requires.batch_kind, self.chains, rng, self.bandwidth
        )
        return SVGDState(**vars(state), squares=torch.zeros_like(state.theta))

    def step(self, state: SVGDState, batch: ModelBatch, rng: Rng) -> tuple[SVGDState, Info]:
        theta = state.theta
        squares = state.squares
        t = state.t
        eps = self.step_size_at(t)
        R = state.replicates
        value, gradient = value_and_gradient(state.model, theta, batch)  # [L], [L, P]
        particles = among(theta, R, self.bandwidth)
        direction = phi = particles.average(gradient) + particles.correction()  # eq. (2.4), [L, P]
        if self.scaling == "adagrad":
            squares = (
                phi.square() if t == 0 else self.beta2 * squares + (1 - self.beta2) * phi.square()
            )
            direction = phi / (self.stability + squares.sqrt())
        state = replace(
            advance(state, theta + eps * direction, self.burn_in, self.thinning), squares=squares
        )
        info = {
            "log_joint": mean_over_chains(value, R),
            "grad_norm": mean_over_chains(torch.linalg.vector_norm(gradient, dim=1), R),
            "direction_norm": mean_over_chains(phi.norm(dim=1), R),
            "step_size": eps,
            "draws": len(state.kept),
        }
        return state, info | particles.facts()

    def response(self, state: SVGDState) -> Response:
        eps = self.largest_step(state.t)
        particles = among(state.theta, state.replicates, self.bandwidth)
        scale = (
            state.squares.sqrt() + self.stability
            if self.scaling == "adagrad"
            else torch.ones_like(state.theta)
        )
        return Response(lambda gradient: eps * particles.average(gradient) / scale, limit=2.0)

    def posterior(self, state: SVGDState) -> Draws:
        return to_draws(state)  # [L, N, P]
