"""Linear regression with the exact posterior and Bayes decisions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, Info
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.inference.linear.conjugate_posterior import ConjugatePosterior, region_radius
from components.inference.linear.known_data import LinearAnalysis, LinearState, read_linear_data
from components.maths.conjugate_regression import coefficients
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import standard_normal
from components.maths.least_squares import LeastSquares, least_squares
from components.posteriors.decisions import AbsoluteLoss, Loss, Pinball, Squared, ToleranceLoss
from components.posteriors.draws import Draws
from components.posteriors.intervals import CentralInterval, DensestInterval
from components.problems.supervised import Supervised
from components.registry import register

Decision = Literal[
    "squared", "absolute", "pinball", "missed", "central_interval", "densest_interval"
]


@dataclass(frozen=True, kw_only=True)
class ConjugateState(LinearState):
    """Draws from the posterior so far, and counts from the simulated data sets."""

    n: int = 0  # simulated data sets
    over_prior: int = 0  # data sets with β from the prior: regions that contain it
    at_beta: int = 0  # data sets with the given β: regions that contain it
    draws: Trace = field(default_factory=Trace)  # rows [draws, P], one per step, on the CPU


@register("inference", "conjugate_bayes")
class ConjugateBayes(LinearAnalysis[ConjugateState]):
    """Savage's linear regression: exact posterior, credible region, and Bayes actions under several
    losses.

    β | σ², y ~ N(m, σ²Λ⁻¹), Λ = XᵀX + diag(λ), m = Λ⁻¹Xᵀy; σ² known or σ² | y ~ InvGamma(a', b').
    Region {β : (β − m)ᵀΛ(β − m) ≤ α s²}, α from χ²_D, or D F_{D,2a'} with s² = b'/a'.  Every step
    makes ``draws`` independent draws, and counts on ``simulations`` simulated data sets how often
    such regions contain β: exactly ``level`` for β from the prior (Savage's coverage), any rate for
    a fixed β.  Results also include, for each of ``decisions`` and each parameter, the Bayes action
    a* = argmin_a E[L(a, s) | y] with its expected loss; and the choice by posterior odds among the
    full model, the one without inputs, and those without one input.

    Raises NumericalError if Λ is singular.

    Source: Bardenet (2021), eq. (1.5), (2.1), (2.4), Figure 2.1; Murphy (2012), section 7.6.3."""

    level: BetweenZeroAndOne
    draws: PositiveInt
    simulations: PositiveInt
    decisions: list[Decision]
    pinball_level: BetweenZeroAndOne
    missed_radius: PositiveFloat
    density_price: PositiveFloat

    def losses(self) -> dict[str, Loss]:
        every: dict[str, Loss] = {
            "squared": Squared(),
            "absolute": AbsoluteLoss(),
            "pinball": Pinball(self.pinball_level),
            "missed": ToleranceLoss(self.missed_radius),
            "central_interval": CentralInterval(1 - self.level),
            "densest_interval": DensestInterval(self.density_price),
        }
        return {name: every[name] for name in self.decisions}

    def init(self, model: Conjugate, problem: Supervised, rng: Rng) -> ConjugateState:
        data = read_linear_data(model, problem)
        # raises before the first step if the posterior does not exist
        model.coefficients(problem.train)
        return ConjugateState(model=model, data=data)

    def _count_covered(self, model: Conjugate, beta: Tensor, fit: LeastSquares) -> int:
        """Number of credible regions of R data sets that contain their β; β [D] or [R, D]."""
        gram = fit.gram + model.penalty.diag()
        m = torch.linalg.solve(gram, (fit.beta @ fit.gram).T).T  # Λ⁻¹Xᵀy [R, D]
        distance = ((beta - m) @ gram * (beta - m)).sum(1)
        if not isinstance(model.noise, tuple):
            return int((distance <= region_radius(self.level, fit.dim, None) * model.noise).sum())
        a, b = model.noise
        shrunk = m - fit.beta
        loss = fit.rss + (shrunk @ fit.gram * shrunk).sum(1) + (model.penalty * m.square()).sum(1)
        a_n = a + 0.5 * fit.rows
        b_n = b + 0.5 * loss
        return int((distance <= region_radius(self.level, fit.dim, a_n) * b_n / a_n).sum())

    def step(self, state: ConjugateState, batch: Batch, rng: Rng) -> tuple[ConjugateState, Info]:
        data = state.data
        model = state.model
        R = self.simulations
        theta = model.sample_prior(R, rng.noise)  # (β, log σ²), or β
        D = len(data.beta)
        sigma = (
            theta[:, D:].mul(0.5).exp()
            if isinstance(model.noise, tuple)
            else theta.new_full((R, 1), model.noise**0.5)
        )
        e = data.errors(R, rng.noise) / data.noise**0.5
        imagined = [
            (theta[:, :D], theta[:, :D] @ data.X.T + sigma * e),
            (data.beta, data.X @ data.beta + data.noise**0.5 * e),
        ]
        over_prior, at_beta = (
            self._count_covered(model, beta, least_squares(data.X, y, 1.0)) for beta, y in imagined
        )
        state = replace(
            state,
            n=state.n + R,
            over_prior=state.over_prior + over_prior,
            at_beta=state.at_beta + at_beta,
        )
        state.draws.append(self._sample(model, batch, rng).cpu())
        return state, {"credible_coverage": state.over_prior / state.n}

    def _sample(self, model: Conjugate, batch: Batch, rng: Rng) -> Tensor:
        """Independent draws of θ from the posterior, [draws, P]."""
        beta_posterior = model.coefficients(batch)
        z = standard_normal((self.draws, len(beta_posterior.m)), rng.noise, beta_posterior.m)
        unit = torch.linalg.solve_triangular(beta_posterior.L.T, z.T, upper=True).T  # N(0, Λ⁻¹)
        if not isinstance(model.noise, tuple):
            return beta_posterior.m + model.noise**0.5 * unit
        a, b = beta_posterior.noise_posterior(*model.noise)
        noise = b / draw_gamma(unit.new_full((self.draws, 1), a), rng.noise)
        return torch.cat([beta_posterior.m + noise.sqrt() * unit, noise.log()], 1)

    def posterior(self, state: ConjugateState) -> ConjugatePosterior:
        data = state.data
        model = state.model
        X = data.X
        y = data.y
        penalty = model.penalty
        beta_posterior = coefficients(X, y, penalty)
        theta = (
            state.draws.rows.flatten(0, 1)[None].to(X)
            if len(state.draws)
            else beta_posterior.m.new_zeros(1, 0, len(model.names))
        )
        noise = (
            beta_posterior.noise_posterior(*model.noise)
            if isinstance(model.noise, tuple)
            else float(model.noise)
        )
        free = int(model.intercept)
        D = X.shape[1]
        sets = [
            list(range(D)),
            list(range(free)),
            *([k for k in range(D) if k != j] for j in range(free, D)),
        ]
        candidates = [
            "all inputs",
            "no input",
            *(f"without {data.names[j]}" for j in range(free, D)),
        ]

        def evidence(columns: list[int]) -> Tensor:
            return coefficients(X[:, columns], y, penalty[columns]).log_evidence_under(model.noise)

        return ConjugatePosterior(
            data=data,
            draws=Draws(theta, theta[:, :1].squeeze(1), list(model.names), model),
            known_coefficients=beta_posterior,
            noise=noise if isinstance(noise, float) else (noise[0], float(noise[1])),
            level=self.level,
            losses=self.losses(),
            candidates=candidates,
            log_evidence=torch.stack([evidence(columns) for columns in sets]),
            n=max(state.n, 1),
            over_prior=state.over_prior,
            at_beta=state.at_beta,
        )
