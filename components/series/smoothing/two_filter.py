"""Two-filter smoothing: a filter forwards, an information filter backwards, and their product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from pydantic import field_validator
from torch import Tensor

from components.contracts.capabilities import TransitionDensity
from components.contracts.roles import Inference
from components.contracts.sequences import Observation
from components.maths.exponential.standard_draws import standard_normal
from components.maths.particles.resampling import ancestors
from components.registry import register
from components.series.filtering.auxiliary_filter import AuxiliaryFilter
from components.series.filtering.beta_auxiliary_filter import BetaAuxiliaryFilter
from components.series.filtering.beta_bootstrap_filter import BetaBootstrapFilter
from components.series.filtering.bootstrap_filter import BootstrapFilter
from components.series.filtering.generalised_particle_filter import stand_in, zero_where_missing
from components.series.filtering.particle_filter import ParticleFilter
from components.series.models.linear_gaussian_ssm import factor, log_normal
from components.series.smoothing.particle_smoother import (
    FilteredParticles,
    ForwardParticles,
    ParticleSmoother,
)
from components.series.smoothing.transitions import pairs

PRIOR_DRAWS = 4096  # trajectories of the prior, used for the moments of the artificial priors


@dataclass(frozen=True)
class ArtificialPrior:
    """γ_t = N(m, C) for one time, and N(m + G(x' − m'), B) for x_t given x_{t+1} = x': from moments
    of prior trajectories."""

    m: Tensor  # [dx]
    L: Tensor  # of C = L Lᵀ [dx, dx]
    G: Tensor | None  # [dx, dx]; None at the last time
    L_B: Tensor | None

    def log_density(self, x: Tensor) -> Tensor:
        """log γ_t(x) for x [R, N, dx]; [R, N]."""
        return log_normal(x - self.m, self.L)


@register("inference", "two_filter")
class TwoFilter(ParticleSmoother):
    """Two-filter smoother: filter prediction times a backward information filter.

        p̃_t(x_t) ∝ γ_t(x_t) p(y_t:T | x_t):   x̃_t ~ q(· | x̃_{t+1}),
        w̃_t ∝ w̃_{t+1} G_t(y_t | x̃_t) γ_t(x̃_t) f(x̃_{t+1} | x̃_t)
              / (γ_{t+1}(x̃_{t+1}) q(x̃_t | x̃_{t+1}))

        w_{t|T}^j ∝ w̃_t^j Σ_i w_{t−1}^i f(x̃_t^j | x_{t−1}^i) / γ_t(x̃_t^j)

    for R replicates of N particles [R, N, dx]; the sum over pairs is O(N²) at each time, in
    blocks that fit in cache.  The artificial priors γ_t are Gaussians with the moments of
    the prior's marginals, and q is the conditional of x_t given x_{t+1} implied by them and
    by the prior's covariances between neighbouring times, all from simulated trajectories:
    up to their error this is exact for a linear Gaussian model, for which w̃_t ∝ G_t; for
    any other model the weights correct them.  G is the potential of the filter, so that a β-filter
    gives the generalised posterior.  In the backward pass, particles are resampled systematically
    at every time.

    Raises:
        NumericalError: a weight is NaN, or a moment is not a covariance.

    Source: Briers, Doucet and Maskell (2010), section 3, eqs. (29) to (33).
    """

    @field_validator("filter")
    @classmethod
    def _check_known_potential(cls, value: Inference) -> Inference:
        if not isinstance(
            value, BootstrapFilter | AuxiliaryFilter | BetaBootstrapFilter | BetaAuxiliaryFilter
        ):
            raise ValueError(
                f"{value.name} has weights that the backward pass does not support; use bootstrap_filter, auxiliary_filter, "
                "beta_bootstrap_filter or beta_auxiliary_filter"
            )
        return value

    def backwards(
        self, state: ForwardParticles, generator: torch.Generator
    ) -> Iterator[FilteredParticles]:
        assert isinstance(self.filter, ParticleFilter)
        model = state.filter.model
        x = state.x.rows
        log_w = state.log_w.rows
        y = state.y.rows
        r, n, dx = x.shape[1:]
        priors = artificial_priors(model, len(x), generator)

        def normal() -> Tensor:
            return standard_normal((r, n, dx), generator, x)

        later = x[-1]  # x̃_{t+1}, resampled
        for t in range(len(x), 0, -1):
            prior = priors[t - 1]
            if prior.G is None or prior.L_B is None:
                now = prior.m + normal() @ prior.L.T
                log_b = torch.zeros_like(log_w[-1])
            else:
                following = priors[t]
                noise = normal() @ prior.L_B.T
                now = prior.m + (later - following.m) @ prior.G.T + noise
                log_b = prior.log_density(now) + model.log_transition(later, now, t + 1)
                log_b = log_b - following.log_density(later) - log_normal(noise, prior.L_B)
            missing = y[t - 1].isnan().any(1)
            batch = Observation(t, y[t - 1], missing=missing if missing.any() else None)
            observation = stand_in(batch, model.observation_mean(now, t).mean(1))
            log_g = self.filter.potential(model, t, generator)(model, observation, now)
            log_b = torch.log_softmax(log_b + zero_where_missing(batch, log_g), 1)
            previous, log_before = (
                (x[t - 2], log_w[t - 2])
                if t > 1
                else (state.start, torch.full_like(log_b, 1 / n).log())
            )
            predicted = torch.empty_like(log_b)
            for block in pairs(model, now, previous, log_before, t):
                top = block.logits.amax(2, keepdim=True)
                # in place for speed
                total = (
                    block.logits.sub_(top).exp_().sum(2, keepdim=True).log_() + top + block.constant
                )
                predicted[block.replicates, block.later] = total.squeeze(2)
            yield FilteredParticles(
                t, now, torch.softmax(log_b + predicted - prior.log_density(now), 1)
            )
            rows = ancestors("systematic", log_b.exp(), generator)
            later = now.flatten(0, 1).index_select(0, rows).view_as(now)


def artificial_priors(
    model: TransitionDensity, times: int, generator: torch.Generator
) -> list[ArtificialPrior]:
    """γ_1 … γ_T and the backward proposals, from simulated trajectories of the prior; moments in
    float64."""
    x = model.init((1, PRIOR_DRAWS), generator)
    priors: list[ArtificialPrior] = []
    previous: Tensor | None = None  # centred draws of the previous time [S, dx]
    for t in range(1, times + 1):
        x = model.transition(x, t, generator)
        draws = x[0].double()
        m = draws.mean(0)
        centred = draws - m
        C = centred.T @ centred / len(draws)
        if previous is not None:
            G = torch.linalg.solve(C, centred.T @ previous / len(draws)).T
            residuals = previous - centred @ G.T
            last = priors.pop()
            L_B = factor(residuals.T @ residuals / len(draws), "the backward proposal's covariance")
            priors.append(ArtificialPrior(last.m, last.L, G.to(x), L_B.to(x)))
        priors.append(
            ArtificialPrior(
                m.to(x), factor(C, "the artificial prior's covariance").to(x), None, None
            )
        )
        previous = centred
    return priors
