"""Random-walk Metropolis with a proposal learnt in warm-up."""

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
from components.inference.log_joint import log_joint
from components.inference.mcmc.adaptation import AdaptedProposal, Proposal, apply_factor
from components.inference.mcmc.metropolis import metropolis_hastings
from components.inference.superchains import Superchains
from components.registry import register


@dataclass(kw_only=True)
class RandomWalkState(Chains):
    value: Tensor  # log π(θ) [C]
    proposal: Proposal


@register("inference", "random_walk_mh")
class RandomWalkMH(Superchains, AdaptedProposal, Sampler[RandomWalkState]):
    """Adaptive random-walk Metropolis–Hastings, C chains in parallel; needs no gradient.

        θ' = θ + (s/√P) L z,  z ~ N(0, I);   θ' is accepted with probability 1 ∧ π(θ')/π(θ)

    θ [C, P].  In warm-up Σ = L Lᵀ follows the pooled covariance of all chains, and each
    chain's log s moves by g t^−κ (α − α*), so that its mean acceptance approaches α*.
    After warm-up both are fixed, and every ``thinning``-th state is kept.  The optimal
    acceptance for a Gaussian is 0.44 for P = 1 and falls to 0.234.

    Raises:
        NumericalError: a log density is NaN or +∞; a proposal of density 0 is rejected.

    Source: Robert and Casella (2004), section 7.5; Haario et al. (2001), section 2; Andrieu
    and Thoms (2008), Algorithm 4.
    """

    requires = Requirements(batch_kind="whole")
    thinning: PositiveInt

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> RandomWalkState:
        state = self.start_chains(model, problem, rng, gradient=False)
        batch = first_batch(problem, self.requires.batch_kind, rng)
        theta = state.theta
        value = log_joint(model, theta, batch).detach()  # [C]
        return RandomWalkState(**vars(state), value=value, proposal=self.init_proposal(theta))

    @torch.no_grad()
    def step(
        self, state: RandomWalkState, batch: ModelBatch, rng: Rng
    ) -> tuple[RandomWalkState, Info]:
        theta = state.theta
        value = state.value
        t = state.t + 1
        L = state.proposal.factor
        log_step = state.proposal.log_step
        z = noise_like(theta, rng.noise)
        scale = log_step.exp()[:, None] / theta.shape[1] ** 0.5  # [C, 1]
        proposal = theta + scale * apply_factor(L, z)
        proposed = log_joint(state.model, proposal, batch)
        accept, alpha = metropolis_hastings(value, proposed, 0.0, t, rng.noise)
        theta = torch.where(accept[:, None], proposal, theta)
        value = torch.where(accept, proposed, value)
        stats = {"lp": value, "acceptance_rate": alpha, "step_size": log_step.exp()}
        state = advance(state, theta, self.warmup, self.thinning, stats)
        state = replace(
            state, value=value, proposal=self.update_proposal(state.proposal, theta, t, alpha)
        )
        info = {
            "log_joint": value.mean(),
            "acceptance": alpha.mean(),
            "step_size": log_step.exp().mean(),
            "draws": len(state.kept),
        }
        return state, info
