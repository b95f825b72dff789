"""Langevin proposals with a Metropolis–Hastings accept step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch, SampleableProblem, first_batch
from components.inference.log_joint import value_and_gradient
from components.inference.mcmc.adaptation import apply_factor, apply_factor_t
from components.inference.mcmc.adapted_metropolis import AdaptedMetropolis, MetropolisChains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class MALAState(MetropolisChains):
    gradient: Tensor  # [C, P]


@register("inference", "mala")
class MALA(AdaptedMetropolis[MALAState]):
    """Metropolis-adjusted Langevin algorithm with a learned preconditioner, C parallel chains.

        θ' = θ + ε Σ ∇log π(θ) + √(2ε) L z,  z ~ N(0, I),  Σ = L Lᵀ
        α  = 1 ∧ π(θ') q(θ | θ') / (π(θ) q(θ' | θ))
        q(θ' | θ) = N(θ' | θ + ε Σ ∇log π(θ), 2ε Σ)

    θ [C, P]; ε in the convention of ``sgld`` (noise of variance 2ε).  With w = L⁻¹(θ' − θ)
    the reverse move has the noise z' = −(w + ε Lᵀ∇log π(θ'))/√(2ε), and log q(θ | θ') − log
    q(θ' | θ) = (‖z‖² − ‖z'‖²)/2: no determinant, no solve.  It is one leapfrog step of size
    √(2ε) of Hamiltonian Monte Carlo.  In warm-up Σ follows the pooled covariance of all chains, and
    each chain's log ε is updated by g t^−κ (α − α*); after warm-up both are fixed, and every
    ``thinning``-th state is stored.

    Raises NumericalError if a log density is NaN or +∞; a proposal of density 0 is
    rejected.

    Source: Roberts and Tweedie (1996); Roberts and Rosenthal (1998); Bardenet (2021),
    section 4.2.
    """

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
        L = state.proposal.factor
        eps = state.proposal.log_step.exp()[:, None]  # [C, 1]
        z = normal_like(theta, rng.noise)
        w = eps * apply_factor_t(L, state.gradient) + (2 * eps).sqrt() * z  # [C, P]
        proposal = theta + apply_factor(L, w)
        proposed, slope = value_and_gradient(state.model, proposal, batch)
        # −z', the noise of the reverse move
        back = (w + eps * apply_factor_t(L, slope)) / (2 * eps).sqrt()
        correction = 0.5 * (z.square() - back.square()).sum(1)
        state, info = self.settle(state, proposal, proposed, correction, rng.noise, gradient=slope)
        return state, info | {"grad_norm": state.gradient.norm(dim=1).mean()}
