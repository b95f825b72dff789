"""SMC²: parameter particles that each carry a particle filter."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import Any

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Parameterised
from components.contracts.posteriors import FilteredStates, SeriesDraws, WritesFiles
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info, ZeroToOne
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.inference.mcmc.adaptation import factor
from components.inference.mcmc.metropolis import metropolis_hastings
from components.maths.exponential.standard_draws import standard_normal
from components.maths.particles.resampling import ancestors, effective_sample_size
from components.posteriors.draws import Draws
from components.registry import register
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.filtering.particle_filter import FilterBasedMethod
from components.series.parameters.passes import min_ess, passing, repeat_observations
from components.series.parameters.smc2_state import (
    SMC2State,
    average_over_sets,
    build_filters,
    summarise_sets,
)
from components.series.posteriors.filtered import Filtering, LearnedSeries
from components.series.sequence import Sequence

SETS = ("theta", "log_z", "ess", "x", "log_wx")  # fields of the state with a row for each set


@register("inference", "smc2")
class SMC2(FilterBasedMethod, Inference[Parameterised, Sequence, Observation, SMC2State]):
    """SMC²: sequential joint inference of parameters and states, R replicates in parallel.

    M parameter sets θ [R·M, P], each with a particle filter [R·M, N, dx]; with
    ẑ_t(θ) = Σ_n w_{t−1}^n G_t(y_t | x_t^n),

        W ← W ẑ_t(θ);   if the ESS of W falls below a share of M:
        resample θ and its filter by W, then ``moves`` times  θ' ~ N(θ, s²/P Cov_W(θ)),
        accept with probability 1 ∧ p(θ') Ẑ'_t / (p(θ) Ẑ_t),
        Ẑ'_t by a new filter over y_1:t

    The product over t of Σ_m W^m ẑ_t(θ^m) estimates the evidence of the model with its
    parameters integrated out.  If fewer than ``least_acceptance`` of the proposals are
    accepted, every filter is replaced by one with 2N particles, up to ``most_particles``, W
    ← W Ẑ^{2N}/Ẑ^N.  A step costs one filter step, a move costs t of them.  With a β-filter
    everything refers to the generalised posterior of a loss, which has an arbitrary scale: ``rate``
    w replaces every Ẑ of θ by Ẑ^w, so that θ has the posterior p(θ) E[Ẑ(θ)^w].  State summaries
    refer to the mixture over θ.

    Raises:
        NumericalError: the filter fails at a parameter set other than a proposal.

    Source: Chopin, Jacob and Papaspiliopoulos (2013), sections 3.1 to 3.6.
    """

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="observation",
        capabilities={Parameterised},
    )
    provides = {FilteredStates, SeriesDraws, WritesFiles}
    mixes = False
    sets: PositiveInt
    rejuvenate_below: ZeroToOne
    moves: PositiveInt
    step_size: PositiveFloat
    regularisation: PositiveFloat
    least_acceptance: ZeroToOne
    most_particles: PositiveInt
    rate: PositiveFloat

    @torch.no_grad()
    def init(self, model: Parameterised, problem: Sequence, rng: Rng) -> SMC2State:
        r = problem.replicates
        m = self.sets
        theta = model.draw_prior(r * m, rng.init)
        start: FilterState = self.filter.init(model.at(theta), repeat_observations(problem, m), rng)
        log_w = theta.new_full((r, m), -math.log(m))
        evidence = problem.observations.new_zeros(r)
        return SMC2State(
            model=model,
            problem=problem,
            particles=start.particles.shape[1],
            begun=theta.unflatten(0, (r, m))[:, 0].clone(),
            theta=theta,
            log_w=log_w,
            log_z=theta.new_zeros(r * m),
            ess=theta.new_full((r * m,), torch.inf),
            x=start.particles,
            log_wx=start.log_w,
            filtered=Filtering(log_normaliser=evidence, evidence=start.filtered.evidence),
        )

    @torch.no_grad()
    def step(self, state: SMC2State, batch: Observation, rng: Rng) -> tuple[SMC2State, Info]:
        m = self.sets
        y = batch.y.repeat_interleave(m, 0)
        missing = batch.missing
        tiled_batch = batch._replace(
            y=y, missing=None if missing is None else missing.repeat_interleave(m)
        )
        now, _ = self._resize_filter(state.particles).step(build_filters(state), tiled_batch, rng)
        increment = self.rate * now.filtered.log_normaliser
        row = now.filtered.newest()
        predicted = average_over_sets(state.log_w, row["predicted"])
        log_w = state.log_w + increment.view_as(state.log_w)
        total = torch.logsumexp(log_w, 1)  # log Σ_m W^m ẑ_t(θ^m)  # [R]
        if not torch.isfinite(total).all():
            raise NumericalError(
                f"parameter weights are all zero or NaN at t = {batch.t}",
                "raise inference.sets",
            )
        state = replace(
            state,
            log_w=log_w - total.unsqueeze(1),
            log_z=state.log_z + increment,
            x=now.particles,
            log_wx=now.log_w,
            ess=torch.minimum(state.ess, min_ess(now).to(state.ess)),
        )
        state.filtered.log_normaliser += total
        summaries = summarise_sets(state, row["mean"], row["variance"], rng)
        ess = effective_sample_size(state.log_w.exp())  # [R]
        state.filtered.add(batch.t, **summaries, predicted=predicted, ess=ess)

        info: Info = {"log_normaliser": total, "ess": ess, "particles": state.particles}
        tired = (ess < self.rejuvenate_below * m).nonzero().flatten()
        if len(tired):
            state, acceptance = self._rejuvenate(state, tired, batch.t, rng)
            info["acceptance"] = acceptance
            if acceptance < self.least_acceptance and 2 * state.particles <= self.most_particles:
                state = self._double_particles(state, batch.t, rng)
        return state, info

    def _resize_filter(self, particles: int) -> Inference:
        """The filter with the given number of particles."""
        return self.filter.model_copy(update={"particles": particles})

    def _run_new_filters(
        self, state: SMC2State, theta: Tensor, replicates: Tensor, t: int, rng: Rng
    ) -> dict[str, Any]:
        """Run new filters over y_1:t at θ [K·M, P], M sets for each of K replicates; return fields
        of the state."""
        some = replace(state.problem, observations=state.problem.observations[replicates])
        (last,) = deque(
            passing(
                self._resize_filter(state.particles),
                state.model.at(theta),
                repeat_observations(some, self.sets),
                t,
                rng,
            ),
            maxlen=1,
        )
        return {
            "theta": theta,
            "log_z": self.rate * last.filtered.log_normaliser,
            "ess": min_ess(last).to(state.ess),
            "x": last.particles,
            "log_wx": last.log_w,
        }

    def _rejuvenate(
        self, state: SMC2State, replicates: Tensor, t: int, rng: Rng
    ) -> tuple[SMC2State, Tensor]:
        """Resample, then move the parameter sets of the given replicates; also returns the
        acceptance rate."""
        m = self.sets
        P = state.theta.shape[1]
        # rows of these replicates  # [K, M]
        rows = replicates.unsqueeze(1) * m + torch.arange(m, device=replicates.device)
        w = state.log_w[replicates].exp()
        theta = state.theta[rows]  # [K, M], [K, M, P]
        off = theta - (w.unsqueeze(1) @ theta)
        L = factor((w.unsqueeze(2) * off).mT @ off, self.regularisation)  # of Cov_W(θ)  # [K, P, P]
        parents = rows.flatten()[ancestors("systematic", w, rng.noise)]  # [K·M]
        sets = {name: vars(state)[name][parents] for name in SETS}
        shares = []
        for _ in range(self.moves):
            theta = sets["theta"]
            z = standard_normal((len(replicates), m, P), rng.noise, theta)
            proposed = theta + self.step_size / P**0.5 * (z @ L.mT).flatten(0, 1)
            try:
                new = self._run_new_filters(state, proposed, replicates, t, rng)
            except NumericalError:  # all reject, because the failing replicate is unknown
                shares.append(theta.new_zeros(()))
                continue
            log_posterior = state.model.log_prior(theta) + sets["log_z"]
            after = state.model.log_prior(proposed) + new["log_z"]
            accept, alpha = metropolis_hastings(log_posterior, after, 0.0, t, rng.noise)
            shares.append(alpha.mean())
            sets = {
                name: torch.where(accept.view(-1, *[1] * (old.dim() - 1)), new[name], old)
                for name, old in sets.items()
            }
        indices = rows.flatten()
        updates = {
            name: vars(state)[name].index_copy(0, indices, value) for name, value in sets.items()
        }
        log_w = state.log_w.index_fill(0, replicates, -math.log(m))
        return replace(state, **updates, log_w=log_w), torch.stack(shares).mean()

    def _double_particles(self, state: SMC2State, t: int, rng: Rng) -> SMC2State:
        """Replace every filter by one with twice the particles, with weights times Ẑ^{2N}/Ẑ^N
        (section 3.6.1)."""
        state = replace(state, particles=2 * state.particles)
        everyone = torch.arange(len(state.log_w), device=state.theta.device)
        new = self._run_new_filters(state, state.theta, everyone, t, rng)
        log_w = state.log_w + (new["log_z"] - state.log_z).view_as(state.log_w)
        total = torch.logsumexp(log_w, 1)
        state.filtered.log_normaliser += total
        return replace(state, **new, log_w=log_w - total.unsqueeze(1))

    def posterior(self, state: SMC2State) -> LearnedSeries:
        r = len(state.log_w)
        names = list(state.model.parameter_names)
        theta = state.theta.unflatten(0, (r, -1))  # [R, M, P]
        stats = {"filter_ess": state.ess.unflatten(0, (r, -1))}
        draws = Draws(
            theta, state.begun, names, state.model, stats, log_weights=state.log_w, replicates=r
        )
        return LearnedSeries(**vars(state.filtered.current_posterior()), parameters=draws)
