"""The no-U-turn sampler, with all chains in lockstep."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field

from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.adaptation import harmonic_mean
from components.inference.hamiltonian.tree import LeapfrogDynamics, no_u_turn
from components.inference.hamiltonian.warmup import HamiltonianChains, WarmUp
from components.registry import register


@register("inference", "nuts")
class NUTS(WarmUp):
    """No-U-turn sampler with multinomial weights and C parallel chains, tuned in warm-up.

    Warm-up learns the step size and masses.  r ~ N(0, M); the trajectory through (θ, r) is
    doubled, forwards or backwards at random, until it turns: with ρ the sum of its momenta,
    r₋ᵀM⁻¹ρ ≤ 0 or r₊ᵀM⁻¹ρ ≤ 0, for it, for one of its subtrees, or for one of two joined
    halves with the nearest state of the other.  The next θ is one of its states, with
    weights e^{−H(θ, r)} and in favour of later halves; H(θ, r) = −log π(θ) + ½ rᵀM⁻¹r, θ and r
    [C, P].  All chains take their leapfrog steps together; chains with a complete
    trajectory wait and are not evaluated.  Warm-up is as in ``hmc``.  A trajectory with an energy
    error above 1000 has diverged: it ends there and is counted.

    Raises NumericalError if the warm-up finds no step size.

    Source: Betancourt (2017), section A.4; Hoffman & Gelman (2014), Algorithms 3 and 6;
    Bardenet (2021), section 4.4.6.
    """

    requires = Requirements(
        kinds={"density", "supervised", "sequence"},
    )
    max_depth: Annotated[int, Field(ge=1, le=20)]

    def step(
        self, state: HamiltonianChains, batch: ModelBatch, rng: Rng
    ) -> tuple[HamiltonianChains, Info]:
        z, tuning = self.ready(state, batch, rng)
        eps = tuning.step_size
        dynamics = LeapfrogDynamics(self.target(state.model), batch, tuning.mass, eps)
        draw = no_u_turn(dynamics, z, self.max_depth, rng.noise)
        tuning = self.learnt(tuning, state, batch, draw.z, harmonic_mean(draw.acceptance), rng)
        stats = {
            "acceptance_rate": draw.acceptance,
            "energy": draw.energy,
            "n_steps": draw.n_steps,
            "tree_depth": draw.depth,
            "step_size": torch.full_like(draw.energy, eps),
        }
        state = self.record_transition(state, batch, tuning, draw.z, draw.diverging, stats, rng)
        info = {
            "log_joint": draw.z.value.mean(),
            "acceptance_rate": draw.acceptance.mean(),
            "step_size": eps,
            "n_steps": draw.n_steps.double().mean(),
            "tree_depth": draw.depth.double().mean(),
            "divergences": state.divergences,
            "draws": len(state.kept),
        }
        return state, info
