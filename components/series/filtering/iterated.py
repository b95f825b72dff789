"""Proposals twisted by functions ψ of the state, which are learnt over passes of the filter.

log ψ_t(x) = log(exp(−½ uᵀM_t u) + c) with u = (1, x − m_t).

Source: Guarniero, Johansen & Lee (2017), Algorithms 1, 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_uniform
from components.maths.particles.draws import standard_normal_like
from components.maths.particles.resampling import ancestors
from components.series.filtering import generalised_particle_filter as particles
from components.series.filtering.generalised_particle_filter import FilterState, FilterStep
from components.series.filtering.particle_filter import AdaptiveFilter
from components.series.models.linear_gaussian_ssm import factor
from components.series.posteriors.filtered import Filtering

RIDGE = 1e-9  # of the normal equations, as a share of the number of particles


@dataclass
class Twist:
    """ψ of one time; float64."""

    M: Tensor  # [R, dx + 1, dx + 1]
    m: Tensor  # [R, 1, dx]
    c: Tensor  # []

    def augment(self, x: Tensor) -> Tensor:
        """(1, x − m) of x [R, N, dx]; [R, N, dx + 1]."""
        return pad(x.double() - self.m, (1, 0), value=1.0)

    def log_value(self, x: Tensor) -> Tensor:
        return torch.logaddexp(_square(self.augment(x), self.M), self.c.log())  # [R, N]


class TwistedNormal:
    """N(μ, Q) ψ / f̃, f̃ = ∫ N(x; μ, Q) ψ(x) dx, by x = μ + L ε, with ε from a mixture of a
    Gaussian, weighted by its share of f̃, and N(0, I)."""

    def __init__(self, psi: Twist, mu: Tensor, Q: Tensor):
        self.mu = mu.double()  # [R, N, dx]
        self.L = factor(Q, "Q").double().expand(len(mu), -1, -1)
        u = psi.augment(mu)
        H = psi.M[:, :, 1:] @ self.L
        self.root = factor(torch.eye(len(H[0, 0])).to(H) + self.L.mT @ H[:, 1:], "the proposal")
        gain = torch.cholesky_solve(H.mT, self.root)
        scale = torch.linalg.diagonal(self.root).log().sum(1, keepdim=True)
        log_part = _square(u, psi.M - H @ gain) - scale
        self.log_mean = torch.logaddexp(log_part, psi.c.log())  # log f̃ [R, N]
        self.share = (log_part - self.log_mean).exp()
        self.centre = -u @ gain.mT  # of ε [R, N, dx]

    def draw(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """A draw for the parent ``rows`` [R, N] of each particle; [R, N, dx]."""
        index = rows.unsqueeze(2).expand_as(self.mu)
        z = standard_normal_like(self.mu, generator)
        u = standard_uniform(rows.shape, generator, z)
        is_guided = (u < self.share.gather(1, rows)).unsqueeze(2)
        scaled = torch.linalg.solve_triangular(self.root, z, upper=False, left=False)
        noise = torch.where(is_guided, self.centre.gather(1, index) + scaled, z)
        return self.mu.gather(1, index) + noise @ self.L.mT


@dataclass(kw_only=True)
class TwistedState(FilterState[Any]):
    """State of a filter, with the functions that twist its proposals."""

    twists: tuple[Twist, ...]  # of times 0 … T


class IteratedProposal(AdaptiveFilter[Any]):
    """A filter with the proposals and the selection of the iterated auxiliary filter.

    The model is ``AdditiveGaussian``.
    """

    def learn(
        self, state: FilterState[Any], times: list[Observation], floor: float, rng: Rng
    ) -> TwistedState:
        """The filter at time 0 with ψ_t fitted, from T to 0, to G_t(ξ_t^n) f̃_{t+1}(ξ_t^n) at the
        particles ξ_t of a pass with the ψ of ``state``, or of a bootstrap filter.

        x_0 ~ N(m_0, P_0) ψ_0 / μ̃ has weight μ̃ / ψ_0(x_0).
        """
        model = state.model
        clouds = [state.particles]
        for batch in times:
            if isinstance(state, TwistedState):
                state, _ = self.advance_twisted(state, batch, rng)
            else:
                potential = self.potential(model, batch.t, rng.noise)
                state, _ = particles.advance(state, batch, rng, potential, self.resampler())
            assert state.weighted is not None
            clouds.append(state.weighted.x)
        log_psi = torch.zeros_like(state.log_w)
        twists: list[Twist] = []
        for t in range(len(times), -1, -1):
            x = clouds[t]
            if t:
                predicted = model.observation_mean(x, t).mean(1)
                log_psi = log_psi + self._log_potential(model, times[t - 1], predicted, x, rng)
            twists.insert(0, fit_log_quadratic(x.double(), log_psi.double(), floor))
            mu = model.transition_mean(clouds[t - 1], t) if t else model.m0.expand_as(x)
            proposal = TwistedNormal(twists[0], mu, model.Q if t else model.P0)
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


def fit_log_quadratic(x: Tensor, log_psi: Tensor, floor: float) -> Twist:
    """ψ by least squares of log ψ^n, over the half with the largest ψ^n; their maximum is 1.

    x [R, N, dx], log ψ [R, N].  Negative eigenvalues of the curvature become 0, and N(0, I) ψ has
    its centre among the standardised particles.
    """
    m = x.mean(1, keepdim=True)
    scale = pad(x.std(1, keepdim=True).clamp(min=1e-12), (1, 0), value=1.0)
    u = pad(x - m, (1, 0), value=1.0) / scale
    i, j = torch.triu_indices(u.shape[2], u.shape[2])
    largest = log_psi >= log_psi.median(1, keepdim=True).values
    y = torch.where(largest, log_psi - log_psi.amax(1, keepdim=True), 0.0).unsqueeze(2)
    features = u[..., i] * u[..., j] * largest.unsqueeze(2)
    gram = features.mT @ features + RIDGE * x.shape[1] * torch.eye(len(i)).to(x)
    M = (scale.mT @ scale).zero_()
    M[:, i, j] = -torch.linalg.solve(gram, features.mT @ y).squeeze(2)
    M = M + M.mT
    values, vectors = torch.linalg.eigh(M[:, 1:, 1:])
    values = values.clamp(min=0).unsqueeze(1)
    M[:, 1:, 1:] = vectors * values @ vectors.mT
    centre = vectors / (1 + values) @ vectors.mT @ M[:, 1:, :1]
    reach = u.norm(dim=2).amax(1).view(-1, 1, 1) / centre.norm(dim=1, keepdim=True)
    M[:, 1:, :1] *= reach.clamp(max=1)
    M[:, :1, 1:] = M[:, 1:, :1].mT
    return Twist(M / (scale.mT @ scale), m, x.new_tensor(floor))


def _square(u: Tensor, M: Tensor) -> Tensor:
    return -0.5 * (u @ M * u).sum(2)
