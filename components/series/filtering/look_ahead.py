"""Base code of auxiliary particle filters: select by expected weight, then move.

Particles move by the transition and are weighted by the potential that selected them, so no
proposal follows an outlier under a robust loss.

Source: Pitt & Shephard (1999); Boustati (2021), Algorithm 8 with q = f.
"""

from __future__ import annotations

import math
from typing import Generic, Literal, TypeVar

import torch
from pydantic import NonNegativeFloat
from torch import Tensor

from components.contracts.capabilities import BoundedObservation, TransitionMean
from components.contracts.requirements import Requirements
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.particles.resampling import ancestors, take_rows
from components.series.filtering.generalised_particle_filter import (
    FilterState,
    FilterStep,
    PropagatedParticles,
    Resampling,
    expectation,
    normalise_log_weights,
    settle,
    stand_in,
    zero_where_missing,
)
from components.series.filtering.particle_filter import ParticleFilter

A = TypeVar("A", bound=TransitionMean)


class LookAheadFilter(ParticleFilter[A], Generic[A]):
    """Auxiliary particle filter with any potential."""

    requires = Requirements(capabilities={TransitionMean})
    stabiliser: NonNegativeFloat
    predictions: Literal["honest", "selected"]

    def asked_by_keys(self) -> dict[type, str]:
        return {BoundedObservation: "stabiliser"} if self.stabiliser else {}

    def bound(self, model: A, mu: Tensor, t: int) -> Tensor:
        """log sup_y G_t(y | μ) for μ [R, N, dx]; [R, 1] or []."""
        assert isinstance(model, BoundedObservation)  # required by the stabiliser
        return mu.new_tensor(model.log_observation_bound(t))

    def step(self, state: FilterState[A], batch: Observation, rng: Rng) -> FilterStep[A]:
        model = state.model
        potential = self.potential(model, batch.t, rng.noise)
        previous = state.particles
        t = batch.t
        r, n = state.log_w.shape
        mu = model.transition_mean(previous, t)  # [R, N, dx]
        predicted = torch.empty(0)
        observation = batch
        if self.predictions == "honest":
            ahead = model.transition(previous, t, rng.noise)
            predicted = expectation(state.log_w, model.observation_mean(ahead, t))  # [R, dy]
            observation = stand_in(batch, predicted)
        elif batch.missing is not None:
            observation = stand_in(batch, expectation(state.log_w, model.observation_mean(mu, t)))
        log_g = potential(model, observation, mu)  # log Ǧ_t(x_{t−1})  # [R, N]
        if self.stabiliser:
            log_g = torch.logaddexp(log_g, math.log(self.stabiliser) + self.bound(model, mu, t))
        log_g = zero_where_missing(batch, log_g)

        first = state.log_w.double() + log_g.double()  # Sample: k ∝ w_{t−1} Ǧ_t
        weights = normalise_log_weights(first, batch)
        rows = ancestors(self.resampling, weights.w, rng.noise)  # [R·N]
        if batch.missing is not None:  # no selection without an observation
            identity = torch.arange(r * n, device=rows.device)
            rows = torch.where(batch.missing.repeat_interleave(n), identity, rows)
        parents = take_rows(previous, rows)
        x = model.transition(parents, t, rng.noise)
        # log Ǧ_t of each particle's parent
        parent_log_g = log_g.flatten().index_select(0, rows).view(r, n)
        second = (
            zero_where_missing(batch, potential(model, observation, x)) - parent_log_g
        )  # Weight: f G / (f Ǧ)
        log_w = weights.log_sum.unsqueeze(1) - math.log(n) + second.double()
        if batch.missing is not None:
            log_w = torch.where(batch.missing.unsqueeze(1), state.log_w.double(), log_w)
        if self.predictions == "selected":
            predicted = model.observation_mean(x, t).mean(1)
        return settle(
            state,
            batch,
            rng,
            PropagatedParticles(x, log_w, predicted),
            Resampling(self.resampling, 0.0),
        )
