"""Parallel stochastic gradient Langevin dynamics with repulsion between the particles."""

from __future__ import annotations

from typing import ClassVar

from pydantic import PositiveFloat

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
from components.inference.sgmcmc.repulsion import Repulsion, init_scattered
from components.inference.sgmcmc.step_sizes import StepSizes
from components.posteriors.draws import Draws
from components.registry import register


@register("inference", "sgld_r")
class SGLDR(Inference[LogJoint, SampleableProblem, ModelBatch, Chains], StepSizes, Repulsion):
    """Parallel SGLD plus repulsion (SGLD+R): Stein's drift with noise to sample Π_l π(z_l).

    z_i ← z_i + (ε_t/L) Σ_l [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)] + η_i,
    η ~ N(0, (2ε_t/L) K ⊗ I),  z [L, P],  k(z, z′) = exp(−‖z − z′‖²/h).  The paper prints
    the second term with the sign of attraction ((2.2), (2.8)).  With the median heuristic h
    moves with the particles, which Γ neglects; the target is invariant only for a fixed
    ``bandwidth``, up to the error of the step.  Particles that do not interact move as SGLD
    with step ε/L: to compare the two at equal noise per particle use L times the step here.
    From step ``repulsion_until`` on K is I.

    Raises:
        NumericalError: a particle leaves the finite numbers, K has no Cholesky factor, or
            most particles start at one place.

    Source: Gallego (2021), eq. (2.7), (2.8), Algorithm 2.1.
    """

    requires = Requirements(
        kinds=frozenset({"density", "supervised"}),
        capabilities=frozenset({"log_joint"}),
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    gradients_per_step: ClassVar[int | str | None] = 1
    provides: ClassVar[frozenset[str]] = SAMPLER_OUTPUTS
    folds_replicates: ClassVar[frozenset[str]] = frozenset({"density"})
    jitter: PositiveFloat

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> Chains:
        return init_scattered(
            model, problem, self.requires.batch_kind, self.chains, rng, self.bandwidth
        )

    def step(self, state: Chains, batch: ModelBatch, rng: Rng) -> tuple[Chains, Info]:
        theta = state.theta
        t = state.t
        R = state.replicates
        eps = self.step_size_at(t)
        value, gradient = value_and_gradient(state.model, theta, batch)  # [L], [L, P]
        particles = self.interaction(theta, t, R)
        drift = particles.average(gradient) + particles.correction()  # D_K ∇log π + Γ_K, [L, P]
        noise, jitter = particles.noise(rng.noise, self.jitter)
        theta = theta + eps * drift + (2 * eps) ** 0.5 * noise  # eq. (2.7)
        state = advance(state, theta, self.burn_in, self.thinning)
        info = {
            "log_joint": mean_over_chains(value, R),
            "grad_norm": mean_over_chains(gradient.norm(dim=1), R),
            "step_size": eps,
            "draws": len(state.kept),
        }
        return state, info | particles.facts() | {"jitter": jitter}

    def response(self, state: Chains) -> Response:
        eps = self.largest_step(state.t)
        particles = self.interaction(state.theta, state.t, state.replicates)
        return Response(lambda gradient: eps * particles.average(gradient), limit=2.0)

    def posterior(self, state: Chains) -> Draws:
        return to_draws(state)  # [L, N, P]
