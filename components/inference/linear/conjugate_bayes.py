"""Linear regression by its exact posterior, and the decisions that it leads to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.inference.linear.known_data import LinearAnalysis, read_linear_data
from components.maths.conjugate_regression import Coefficients, coefficients
from components.maths.least_squares import LeastSquares, LinearData, least_squares
from components.posteriors.decisions import (
    AbsoluteLoss,
    CentralInterval,
    CostMatrixLoss,
    DensestInterval,
    Loss,
    Pinball,
    Squared,
    ToleranceLoss,
    model_probabilities,
    to_samples,
)
from components.posteriors.draws import Draws
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Decision = Literal[
    "squared", "absolute", "pinball", "missed", "central_interval", "densest_interval"
]


def region_radius(level: float, dim: int, shape: float | None) -> float:
    """The α for which P((β − m)ᵀΛ(β − m) ≤ α s²) = level, s² = σ² where it is known and b/a where
    σ² ~ InvGamma(a, b)."""
    from scipy import stats  # slow to import

    if shape is None:
        return float(stats.chi2.ppf(level, dim))
    return dim * float(stats.f.ppf(level, dim, 2 * shape))


@dataclass(frozen=True)
class ConjugatePosterior:
    """The exact posterior, draws from it, the decisions it leads to, and how often its regions hold
    β."""

    data: LinearData
    draws: Draws  # one chain of independent draws
    known_coefficients: Coefficients
    noise: float | tuple[float, float]  # σ², or (a, b) of its posterior InvGamma
    level: float
    losses: dict[str, Loss]
    candidates: list[str]  # models among which to choose
    log_evidence: Tensor  # [M]
    n: int  # imagined data sets
    over_prior: int  # of those with β from the prior: regions that held it
    at_beta: int  # of those with the β at hand

    @property
    def theta_draws(self) -> Tensor:
        """Parameters θ = (β, log σ²), or only β, of every draw."""
        return self.draws.flat

    @property
    def bulk_draws(self) -> Draws:
        return self.draws

    @property
    def scale(self) -> float:
        """s²: σ², or b/a."""
        return self.noise if isinstance(self.noise, float) else self.noise[1] / self.noise[0]

    @property
    def radius(self) -> float:
        """Credible region: (β − m)ᵀΛ(β − m) ≤ radius · s²."""
        return region_radius(
            self.level,
            len(self.known_coefficients.m),
            None if isinstance(self.noise, float) else self.noise[0],
        )

    @property
    def model_probabilities(self) -> Tensor:
        """Posterior probabilities of the candidates, equally probable before the data [M]."""
        return model_probabilities(self.log_evidence)

    def decisions(self) -> list[dict[str, Any]]:
        """One row per parameter and loss: the Bayes action and its posterior expected loss; one for
        the choice of model."""
        belief = to_samples(self.draws)
        rows = []
        for name, loss in self.losses.items():
            action = loss.act(belief)
            costs = loss.expected_loss(action, belief)
            for j, parameter in enumerate(self.draws.names):
                bounds = [float(v) for v in action[..., j].flatten()]
                rows.append(
                    {
                        "about": parameter,
                        "loss": name,
                        "action": bounds[0],
                        "to": bounds[1] if len(bounds) == 2 else None,
                        "expected_loss": float(costs[j]),
                    }
                )
        choice = CostMatrixLoss.zero_one(len(self.candidates))
        best = choice.act(self.model_probabilities)
        cost = float(choice.expected_loss(best, self.model_probabilities))
        rows.append(
            {
                "about": "model",
                "loss": "zero_one",
                "action": self.candidates[int(best)],
                "expected_loss": cost,
            }
        )
        return rows

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over the draws at x [B, D]."""
        return self.draws.predict(x, generator)

    def scores(self) -> dict[str, float]:
        rows = self.decisions()
        out = {"log_evidence": float(self.log_evidence[0])}
        for name in self.losses:
            costs = [row["expected_loss"] for row in rows if row["loss"] == name]
            out[f"expected_loss/{name}"] = sum(costs) / len(costs)  # mean over the parameters
        out["expected_loss/model_choice"] = rows[-1]["expected_loss"]
        out["coverage/credible"] = self.over_prior / self.n
        return out | {"coverage/credible_at_beta": self.at_beta / self.n}

    def figures(self) -> dict[str, Figure]:
        from components.figures.supervised.credible_region import credible_region

        figure = credible_region(
            self.data,
            self.known_coefficients,
            self.noise,
            self.theta_draws,
            self.candidates,
            self.model_probabilities,
            level=self.level,
            scale=self.scale,
            radius=self.radius,
        )
        return {"savage": figure}


@dataclass(frozen=True, kw_only=True)
class ConjugateState:
    """Draws from the posterior so far, and what the imagined data sets have shown."""

    model: Conjugate = rebuilt()
    data: LinearData = rebuilt()
    n: int = 0  # imagined data sets
    over_prior: int = 0  # of those with β from the prior: regions that held it
    at_beta: int = 0  # of those with the β at hand
    draws: Trace = field(default_factory=Trace)  # rows [draws, P], one a step, on the CPU


@register("inference", "conjugate_bayes")
class ConjugateBayes(LinearAnalysis[ConjugateState]):
    """Savage's linear regression: the exact posterior, its credible region, Bayes actions under
    several losses.

    β | σ², y ~ N(m, σ²Λ⁻¹), Λ = XᵀX + diag(λ), m = Λ⁻¹Xᵀy; σ² known or σ² | y ~ InvGamma(a', b').
    Region {β : (β − m)ᵀΛ(β − m) ≤ α s²}, α from χ²_D, or D F_{D,2a'} with s² = b'/a'.  Every step
    makes ``draws`` independent draws, and checks on ``simulations`` imagined data sets how often
    regions of that kind hold β: over β from the prior exactly ``level`` (Savage's coverage), at one
    β anything.  For each of ``decisions`` and each parameter the Bayes action a* = argmin_a E[L(a,
    s) | y] and its expected loss; and the choice among the full model, the one without any input,
    and those without one input, by posterior odds.

    Raises NumericalError when Λ is singular.

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
        model.coefficients(problem.train)  # raises before any step where there is no posterior
        return ConjugateState(model=model, data=data)

    def _count_covered(self, model: Conjugate, beta: Tensor, fit: LeastSquares) -> int:
        """Credible regions of R data sets that hold their β; β [D] or [R, D]."""
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
        z = torch.randn(
            self.draws,
            len(beta_posterior.m),
            generator=rng.noise,
            dtype=beta_posterior.m.dtype,
            device=rng.noise.device,
        )
        unit = torch.linalg.solve_triangular(
            beta_posterior.L.T, z.to(beta_posterior.m).T, upper=True
        ).T  # N(0, Λ⁻¹)
        if not isinstance(model.noise, tuple):
            return beta_posterior.m + model.noise**0.5 * unit
        a, b = beta_posterior.noise_posterior(*model.noise)
        shape = torch.full(
            (self.draws, 1), a, dtype=beta_posterior.m.dtype, device=rng.noise.device
        )
        noise = b / torch._standard_gamma(shape, generator=rng.noise).to(beta_posterior.m)
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
