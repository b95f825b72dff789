"""Langevin proposals with an accept step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.requirements import Requirements
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import (
    Chains,
    ModelBatch,
    SampleableProblem,
    Sampler,
    advance,
    first_batch,
    noise_like,
)
from components.inference.log_joint import value_and_gradient
from components.inference.mcmc.adaptation import (
    AdaptedProposal,
    Proposal,
    apply_factor,
    apply_factor_t,
)
from components.inference.mcmc.metropolis import metropolis_hastings
from components.inference.superchains import Superchains
from components.registry import register


@dataclass(kw_only=True)
class MALAState(Chains):
    value: Tensor  # log π(θ) [C]
    gradient: Tensor  # [C, P]
    proposal: Proposal


@register("inference", "mala")
class MALA(Superchains, AdaptedProposal, Sampler[MALAState]):
    """Metropolis-adjusted Langevin algorithm with a learned preconditioner, C parallel chains.

        θ' = θ + ε Σ ∇log π(θ) + √(2ε) L z,  z ~ N(0, I),  Σ = L Lᵀ
        α  = 1 ∧ π(θ') q(θ | θ') / (π(θ) q(θ' | θ))
        q(θ' | θ) = N(θ' | θ + ε Σ ∇log π(θ), 2ε Σ)

    θ [C, P]; ε in the convention of ``sgld`` (noise of variance 2ε).  With w = L⁻¹(θ' − θ)
    the reverse move has the noise z' = −(w + ε Lᵀ∇log π(θ'))/√(2ε), and log q(θ | θ') − log
    q(θ' | θ) = (‖z‖² − ‖z'‖²)/2: no determinant, no solve.  It is one leapfrog step of size
    √(2ε) of Hamiltonian Monte Carlo.  In warm-up Σ follows the covariance of all chains
    together and each chain's log ε moves by g t^−κ (α − α*); after warm-up both are fixed,
    and every ``thinning``-th state is kept.

    Raises NumericalError if a log density is NaN or +∞; a proposal of density 0 is
    rejected.

    Source: Roberts and Tweedie (1996); Roberts and Rosenthal (1998); Bardenet (2021),
    section 4.2.
    """

    requires = Requirements(batch_kind="whole")
    thinning: PositiveInt

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> MALAState:
        state = self.start_chains(model, problem, rng)
        batch = first_batch(problem, self.requires.batch_kind, rng)
        theta = state.theta
        value, gradient = value_and_gradient(model, theta, batch)  # [C], [C, P]
        return MALAState(
            **vars(state), value=value, gradient=gradient, proposal=self.init_proposal(theta)
        )

    def step(self, state: MALAState, batch: ModelBatch, rng: Rng) -> tuple[MALAState, Info]:
        theta = state.theta
        value = state.value
        gradient = state.gradient
        t = state.t + 1
        L = state.proposal.factor
        log_step = state.proposal.log_step
        eps = log_step.exp()[:, None]  # [C, 1]
        z = noise_like(theta, rng.noise)
        w = eps * apply_factor_t(L, gradient) + (2 * eps).sqrt() * z  # [C, P]
        proposal = theta + apply_factor(L, w)
        proposed, slope = value_and_gradient(state.model, proposal, batch)
        # −z', the noise that would lead back
        back = (w + eps * apply_factor_t(L, slope)) / (2 * eps).sqrt()
        correction = 0.5 * (z.square() - back.square()).sum(1)
        accept, alpha = metropolis_hastings(value, proposed, correction, t, rng.noise)
        theta = torch.where(accept[:, None], proposal, theta)
        gradient = torch.where(accept[:, None], slope, gradient)
        value = torch.where(accept, proposed, value)
        stats = {"lp": value, "acceptance_rate": alpha, "step_size": eps[:, 0]}
        state = advance(state, theta, self.warmup, self.thinning, stats)
        learnt = self.update_proposal(state.proposal, theta, t, alpha)
        state = replace(state, value=value, gradient=gradient, proposal=learnt)
        info = {
            "log_joint": value.mean(),
            "grad_norm": gradient.norm(dim=1).mean(),
            "acceptance": alpha.mean(),
            "step_size": eps.mean(),
            "draws": len(state.kept),
        }
        return state, info
