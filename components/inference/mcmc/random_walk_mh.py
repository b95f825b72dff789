"""Random-walk Metropolis with a proposal learned in warm-up."""

from __future__ import annotations

import torch

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch, SampleableProblem, first_batch
from components.inference.log_joint import log_joint
from components.inference.mcmc.adaptation import apply_factor
from components.inference.mcmc.adapted_metropolis import AdaptedMetropolis, MetropolisChains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@register("inference", "random_walk_mh")
class RandomWalkMH(AdaptedMetropolis[MetropolisChains]):
    """Adaptive random-walk Metropolis–Hastings, C chains in parallel; needs no gradient.

        θ' = θ + (s/√P) L z,  z ~ N(0, I);   θ' is accepted with probability 1 ∧ π(θ')/π(θ)

    θ [C, P].  In warm-up Σ = L Lᵀ follows the pooled covariance of all chains, and each
    chain's log s is updated by g t^−κ (α − α*), so that its mean acceptance approaches α*. After
    warm-up both are fixed, and every ``thinning``-th state is stored.  The optimal acceptance for a
    Gaussian is 0.44 for P = 1 and falls to 0.234.

    Raises:
        NumericalError: a log density is NaN or +∞; a proposal of density 0 is rejected.

    Source: Robert and Casella (2004), section 7.5; Haario et al. (2001), section 2; Andrieu
    and Thoms (2008), Algorithm 4.
    """

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> MetropolisChains:
        state = self.start_chains(model, problem, rng, gradient=False)
        batch = first_batch(problem, self.requires.batch_kind, rng)
        theta = state.theta
        value = log_joint(model, theta, batch).detach()  # [C]
        return MetropolisChains(**vars(state), value=value, proposal=self.init_proposal(theta))

    @torch.no_grad()
    def step(
        self, state: MetropolisChains, batch: ModelBatch, rng: Rng
    ) -> tuple[MetropolisChains, Info]:
        theta = state.theta
        z = normal_like(theta, rng.noise)
        scale = state.proposal.log_step.exp()[:, None] / theta.shape[1] ** 0.5  # [C, 1]
        proposal = theta + scale * apply_factor(state.proposal.factor, z)
        proposed = log_joint(state.model, proposal, batch)
        return self.settle(state, proposal, proposed, 0.0, rng.noise)
