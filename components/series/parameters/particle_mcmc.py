"""Particle marginal Metropolis–Hastings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import Parameterised, TransitionDensity
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace, is_kept_step
from components.errors import NumericalError
from components.inference.chains import stack_kept
from components.inference.mcmc.adaptation import AdaptedProposal, Proposal, apply_factor
from components.inference.mcmc.metropolis import metropolis_hastings
from components.maths.exponential.standard_draws import normal_like
from components.posteriors.draws import Draws
from components.registry import register
from components.series.filtering.generalised_particle_filter import WeightedParticles
from components.series.filtering.particle_filter import FilterBasedMethod
from components.series.parameters.passes import min_ess, passing, repeat_observations, trajectories
from components.series.posteriors.smoothed import SampledSeries
from components.series.sequence import Sequence


class Tried(NamedTuple):
    """Proposed parameters, the estimate of their log density, and its particles."""

    theta: Tensor  # [K, P]
    value: Tensor  # log p(θ) + log Ẑ(θ) [K]
    ess: Tensor  # smallest effective sample size over all times [K]
    clouds: list[WeightedParticles]  # particles at every time; empty if the filter failed


@dataclass(kw_only=True)
class ParticleChains:
    """C chains for each of R replicates: their positions, the filter results there, and the stored
    draws."""

    model: Parameterised = not_checkpointed()
    # observations of each replicate, repeated for each of its chains [R·C, T, dy]
    problem: Sequence = not_checkpointed()
    t: int = 0  # steps done
    begun: Tensor  # [R·C, P] start positions of the chains
    theta: Tensor  # current positions of the chains [R·C, P]
    value: Tensor  # log p(θ) + log Ẑ(θ), estimated when θ was proposed [R·C]
    ess: Tensor  # smallest effective sample size in the filter of that estimate [R·C]
    states: Tensor  # a trajectory x_1 … x_T of the same particles [R·C, T, dx]
    proposal: Proposal
    kept: Trace = field(default_factory=Trace)  # rows of θ [R·C, P], on the CPU
    kept_states: Trace = field(default_factory=Trace)  # rows [R·C, T, dx], on the CPU
    # rows [R·C], on the CPU
    stats: defaultdict[str, Trace] = field(default_factory=lambda: defaultdict(Trace))


@register("inference", "particle_mcmc")
class ParticleMCMC(
    AdaptedProposal, FilterBasedMethod, Inference[Parameterised, Sequence, Series, ParticleChains]
):
    """Particle marginal Metropolis–Hastings with likelihoods estimated by a particle filter.

        θ' = θ + (s/√P) L z;   (Ẑ', x'_1:T) by a filter at θ'
        accept with probability 1 ∧ p(θ') Ẑ' / (p(θ) Ẑ)

    The random walk moves the unknown parameters.  C chains for each of R replicates run in
    parallel, θ [R·C, P], particles [R·C, N, dx]: one step is one pass of ``filter`` over
    the whole series for every chain.  Ẑ of the current θ is kept and never re-estimated,
    which makes p(θ, x_1:T | y_1:T) the stationary distribution for any number of particles.
    With a β-filter Ẑ estimates the normaliser of the generalised posterior, and the chain
    targets that posterior of θ.  In warm-up the proposal adapts as in ``random_walk_mh``,
    for each replicate from its own chains, with one s for all of them: otherwise a chain stuck at
    an overestimated Ẑ would adapt to a small step and stay there.  If the filter of any chain fails
    in a step, all chains reject that step.

    Raises:
        NumericalError: the filter fails at the start of a chain, a draw from the prior.

    Source: Andrieu, Doucet and Holenstein (2010), section 2.4.2; Andrieu and Thoms (2008),
    Algorithm 4.
    """

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="series",
        capabilities={Parameterised, TransitionDensity},
    )
    chains: PositiveInt
    thinning: PositiveInt
    # Σ adapted in warm-up: identity (not adapted) | dense (one P × P Cholesky factor a step)
    covariance: Literal["identity", "dense"]

    @torch.no_grad()
    def init(self, model: Parameterised, problem: Sequence, rng: Rng) -> ParticleChains:
        repeated = repeat_observations(problem, self.chains)
        begin = model.draw_prior(repeated.replicates, rng.init)  # [R·C, P]
        tried = self._evaluate_proposal(model, repeated, begin, rng)
        states = trajectories(_of(model, begin), tried.clouds, rng.noise)
        proposal = self.init_proposal(begin.unflatten(0, (-1, self.chains)))
        return ParticleChains(
            model=model,
            problem=repeated,
            begun=begin,
            theta=begin,
            value=tried.value,
            ess=tried.ess,
            states=states,
            proposal=proposal,
        )

    def _evaluate_proposal(
        self, model: Parameterised, problem: Sequence, theta: Tensor, rng: Rng
    ) -> Tried:
        """log p(θ) + log Ẑ(θ) of θ [R·C, P], by a new filter."""
        clouds = []
        for state in passing(
            self.filter, model.at(theta), problem, problem.observations.shape[1], rng
        ):
            assert state.weighted is not None  # set after a step of the filter
            clouds.append(state.weighted)
        value = model.log_prior(theta) + state.filtered.log_normaliser
        return Tried(theta, value, min_ess(state).to(value), clouds)

    @torch.no_grad()
    def step(self, state: ParticleChains, batch: Series, rng: Rng) -> tuple[ParticleChains, Info]:
        model = state.model
        t = state.t + 1
        theta = state.theta.unflatten(0, (-1, self.chains))
        L = state.proposal.factor  # [R, C, P]
        z = normal_like(theta, rng.noise)
        scale = state.proposal.log_step.exp().unsqueeze(-1) / theta.shape[-1] ** 0.5  # [R, C, 1]
        try:
            tried = self._evaluate_proposal(
                model, state.problem, (theta + scale * apply_factor(L, z)).flatten(0, 1), rng
            )
        except NumericalError:
            tried = Tried(state.theta, torch.full_like(state.value, -torch.inf), state.ess, [])
        accept, alpha = metropolis_hastings(state.value, tried.value, 0.0, t, rng.noise)  # [R·C]
        new_theta = torch.where(accept.unsqueeze(1), tried.theta, state.theta)
        value = torch.where(accept, tried.value, state.value)
        ess = torch.where(accept, tried.ess, state.ess)
        states = state.states.clone()
        if accept.any():
            clouds = [
                WeightedParticles(cloud.x[accept], cloud.log_w[accept]) for cloud in tried.clouds
            ]
            states[accept] = trajectories(_of(model, new_theta[accept]), clouds, rng.noise)

        stats = {
            "lp": value,
            "acceptance_rate": alpha,
            "step_size": state.proposal.log_step.exp().flatten(),
            "filter_ess": ess,
        }
        if is_kept_step(t, self.warmup, self.thinning):
            state.kept.append(new_theta.cpu())
            state.kept_states.append(states.cpu())
            for name, numbers in stats.items():
                state.stats[name].append(numbers.cpu())
        shared = alpha.view(theta.shape[:2]).mean(1, keepdim=True).expand(theta.shape[:2])
        proposal = self.update_proposal(state.proposal, new_theta.view_as(theta), t, shared)
        means = dict(zip(model.parameter_names, model.constrain(new_theta).mean(0), strict=True))
        info = means | {
            "log_density": value.mean(),
            "acceptance": alpha.mean(),
            "draws": len(state.kept),
        }
        return replace(
            state, t=t, theta=new_theta, value=value, ess=ess, states=states, proposal=proposal
        ), info

    def posterior(self, state: ParticleChains) -> SampledSeries:
        like = state.theta
        theta = stack_kept(state.kept, like)  # [R·C, N, P]
        states = stack_kept(state.kept_states, state.states)
        stats = {name: rows.stack_rows(1).to(like.device) for name, rows in state.stats.items()}
        replicates = len(like) // self.chains
        names = list(state.model.parameter_names)
        draws = Draws(theta, state.begun, names, state.model, stats, like, replicates=replicates)
        return SampledSeries.summarise(states.unflatten(0, (replicates, -1)), draws)


def _of(model: Parameterised, theta: Tensor) -> TransitionDensity:
    """The transition density of the models for K parameter sets."""
    density = model.at(theta)
    assert isinstance(density, TransitionDensity)  # it is one of the method's requirements
    return density
