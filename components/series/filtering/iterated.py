"""Proposals twisted by functions ψ of the state, which are learnt over passes of the filter.

Source: Guarniero, Johansen & Lee (2017), Algorithms 1, 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.particles.resampling import ancestors
from components.series.filtering import generalised_particle_filter as particles
from components.series.filtering.generalised_particle_filter import FilterState, FilterStep
from components.series.filtering.particle_filter import AdaptiveFilter
from components.series.filtering.twists import Twist, TwistedNormal, fit_log_quadratic
from components.series.posteriors.filtered import Filtering


@dataclass(frozen=True)
class PassOptions:
    """Options of the passes that learn ψ."""

    passes: int  # their largest number
    spread: float  # of log Ẑ
    floor: float  # c, as a share of ∫ f exp(quadratic)


@dataclass(kw_only=True)
class TwistedState(FilterState[Any]):
    """State of a filter, with the functions that twist its proposals."""

    twists: tuple[Twist, ...]  # of times 0 … T


class IteratedProposal(AdaptiveFilter[Any]):
    """A filter with the proposals and the selection of the iterated auxiliary filter.

    The model is ``AdditiveGaussian``.
    """

    def learn(
        self,
        state: FilterState[Any],
        times: list[Observation],
        options: PassOptions,
        rng: Rng,
    ) -> FilterState[Any]:
        """The filter at time 0 with ψ fitted in each pass to the particles of the last one; the
        first pass is a bootstrap filter.

        A replicate keeps its ψ when Ẑ of its last two passes have a small enough spread.
        """
        log_z = torch.full_like(state.log_w[:, 0], math.inf)
        settled = torch.zeros_like(log_z, dtype=torch.bool)
        for _ in range(options.passes):
            clouds, now = self._run_pass(state, times, rng)
            settled = settled | ((now - log_z).abs() < options.spread)
            if settled.all():
                break
            refit = self._fit(state, clouds, times, options.floor, rng)
            state = _keep(state, settled, refit) if isinstance(state, TwistedState) else refit
            log_z = now
        return state

    def _run_pass(
        self, state: FilterState[Any], times: list[Observation], rng: Rng
    ) -> tuple[list[Tensor], Tensor]:
        """Particles of the times 0 … T, [R, N, dx] each, and log Ẑ [R]."""
        model = state.model
        clouds = [state.particles]
        log_z = state.filtered.log_normaliser.clone()  # each step adds to it in place
        state = replace(state, filtered=Filtering(log_normaliser=log_z))
        for batch in times:
            if isinstance(state, TwistedState):
                state, _ = self.advance_twisted(state, batch, rng)
            else:
                potential = self.potential(model, batch.t, rng.noise)
                state, _ = particles.advance(state, batch, rng, potential, self.resampler())
            assert state.weighted is not None
            clouds.append(state.weighted.x)
        return clouds, log_z

    def _fit(
        self,
        state: FilterState[Any],
        clouds: list[Tensor],
        times: list[Observation],
        floor: float,
        rng: Rng,
    ) -> TwistedState:
        """ψ_t from T to 0, fitted to G_t(ξ_t^n) f̃_{t+1}(ξ_t^n) at the particles ξ_t of a pass.

        c_t is ``floor`` times the mean of ∫ f(x | ξ_{t−1}^n) exp(quadratic) dx over n.
        x_0 ~ N(m_0, P_0) ψ_0 / μ̃ has weight μ̃ / ψ_0(x_0).
        """
        model = state.model
        log_psi = torch.zeros_like(state.log_w)
        twists: list[Twist] = []
        for t in range(len(times), -1, -1):
            x = clouds[t]
            if t:
                predicted = model.observation_mean(x, t).mean(1)
                log_psi = log_psi + self._log_potential(model, times[t - 1], predicted, x, rng)
            mu = model.transition_mean(clouds[t - 1], t) if t else model.m0.expand_as(x)
            noise = model.Q if t else model.P0
            twist = fit_log_quadratic(x.double(), log_psi.double())
            mass = TwistedNormal(twist, mu, noise).log_mean.exp().mean(1, keepdim=True)
            twists.insert(0, replace(twist, c=floor * mass))
            proposal = TwistedNormal(twists[0], mu, noise)
            log_psi = proposal.log_mean
        start = proposal.draw(torch.arange(x.shape[1]).to(mu.device).expand_as(log_psi), rng.init)
        log_w = log_psi - twists[0].log_value(start)
        total = (log_w.logsumexp(1) - math.log(x.shape[1])).to(x)
        fields: dict[str, Any] = vars(state) | {
            "particles": start.to(x),
            "log_w": log_w.log_softmax(1).to(x),
            "filtered": Filtering(log_normaliser=total, evidence=state.filtered.evidence),
            "twists": tuple(twists),
        }
        return TwistedState(**fields)

    def _log_potential(
        self, model: Any, batch: Observation, predicted: Tensor, x: Tensor, rng: Rng
    ) -> Tensor:
        potential = self.potential(model, batch.t, rng.noise)
        log_g = potential(model, particles.stand_in(batch, predicted), x)
        return particles.zero_where_missing(batch, log_g)  # [R, N]

    def advance_twisted(self, state: TwistedState, batch: Observation, rng: Rng) -> FilterStep[Any]:
        """k_t ~ w_{t−1}^k f̃_t(x_{t−1}^k), x_t ~ f_t(· | x_{t−1}^{k_t}) ψ_t / f̃_t, w_t = G_t / ψ_t.

        A replicate keeps its particles, with weights w_{t−1} f̃_t, while their effective sample
        size is above ``resample_below`` · N.  Predictions are Σ_n w_{t−1}^n h over draws from f.
        """
        model = state.model
        previous = state.particles
        t = batch.t
        n = previous.shape[1]
        ahead = model.observation_mean(model.transition(previous, t, rng.noise), t)
        predicted = particles.expectation(state.log_w, ahead)
        proposal = TwistedNormal(state.twists[t], model.transition_mean(previous, t), model.Q)
        first = state.log_w + proposal.log_mean
        weights = particles.normalise_log_weights(first, batch)
        rows = ancestors(self.resampling, weights.w, rng.noise).view_as(first) % n
        stay = (weights.ess > self.resample_below * n).unsqueeze(1)
        rows = torch.where(stay, torch.arange(n).to(rows), rows)
        x = proposal.draw(rows, rng.noise)
        log_w = torch.where(stay, first, weights.log_sum.unsqueeze(1) - math.log(n))
        log_w = log_w - state.twists[t].log_value(x)
        x = x.to(previous)
        log_w = log_w + self._log_potential(model, batch, predicted, x, rng)
        propagated = particles.PropagatedParticles(x, log_w, predicted)
        return particles.settle(
            state, batch, rng, propagated, particles.Resampling(self.resampling, 0.0)
        )


def _keep(old: TwistedState, settled: Tensor, new: TwistedState) -> TwistedState:
    """The new filter, with the old ψ, particles and weights of settled replicates [R]."""

    def select(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(settled.view(-1, *[1] * (b.dim() - 1)), a, b)

    total = select(old.filtered.log_normaliser, new.filtered.log_normaliser)
    twists = zip(old.twists, new.twists, strict=True)
    return replace(
        new,
        particles=select(old.particles, new.particles),
        log_w=select(old.log_w, new.log_w),
        filtered=replace(new.filtered, log_normaliser=total),
        twists=tuple(Twist(*map(select, (a.M, a.m, a.c), (b.M, b.m, b.c))) for a, b in twists),
    )
