"""Estimators of a linear regression compared by their risk functions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.costs.counts import count
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.linear.known_data import (
    LinearAnalysis,
    LinearState,
    plug_in,
    read_linear_data,
)
from components.maths.exponential.standard_draws import standard_normal
from components.maths.least_squares import (
    LeastSquares,
    LinearData,
    hkb_penalty,
    james_stein,
    least_squares,
    ridge,
)
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    from components.figures.style import Figures

ESTIMATORS = ["least_squares", "james_stein", "james_stein_plus", "ridge_hkb", "bayes"]


def estimates(fit: LeastSquares, Q: Tensor, penalty: Tensor, free: int = 0) -> Tensor:
    """Every estimator on R data sets, in the order of ESTIMATORS: [E, R, D].

    ``ridge_hkb`` has λ = D σ̂²/‖β̂‖² computed for each data set (Hoerl, Kennard & Baldwin 1975) and
    does not penalise the first ``free`` coefficients (an intercept); ``bayes`` is the posterior
    mean under β ~ N(0, σ² diag(penalty)⁻¹), the Bayes rule for squared loss."""
    hkb_penalties = hkb_penalty(fit, free)  # [R]
    if free:
        columns = penalty.new_ones(fit.dim)
        columns[:free] = 0
        shrunk = ridge(fit, hkb_penalties.unsqueeze(-1) * columns)
    else:  # one decomposition serves all data sets
        g, V = torch.linalg.eigh(fit.gram)
        shrunk = (fit.beta @ V) * (g / (g + hkb_penalties.unsqueeze(-1))) @ V.T
    rules = [
        fit.beta,
        james_stein(fit, Q, False),
        james_stein(fit, Q, True),
        shrunk,
        ridge(fit, penalty),
    ]
    return torch.stack(rules)


@dataclass(frozen=True)
class Risks:
    """Monte-Carlo risks with standard errors: along a ray of coefficients, and integrated over the
    prior."""

    data: LinearData
    model: Conjugate
    loss: str
    multiples: list[float]  # r in β = r β₀, the ray [M]
    n: int
    risk: Tensor  # [E, M]
    error: Tensor  # [E, M], standard errors
    gain: Tensor  # risk minus the risk of least squares on the same data sets [E, M]
    gain_error: Tensor  # [E, M]
    bayes_risk: Tensor  # [E]
    bayes_error: Tensor  # [E]
    # [D] estimate on the observed data by the estimator with the smallest integrated risk
    chosen: Tensor

    @property
    def dominating_estimators(self) -> dict[str, bool]:
        """Estimators that dominate least squares along the ray: never above it, and at least two
        standard errors below it somewhere."""
        z = self.gain / self.gain_error.clamp_min(1e-300)
        return {
            name: bool((z[e] < 2).all() and (z[e] < -2).any())
            for e, name in enumerate(ESTIMATORS)
            if name != "least_squares"
        }

    def predict(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """N(xᵀβ̃, σ̂²) at x [B, D], β̃ by the estimator with the smallest integrated risk."""
        return plug_in(self.data, self.model, self.chosen, x)

    def scores(self) -> dict[str, float]:
        worst = {
            f"worst_risk/{name}": float(self.risk[e].max()) for e, name in enumerate(ESTIMATORS)
        }
        bayes = {
            f"bayes_risk/{name}": float(self.bayes_risk[e]) for e, name in enumerate(ESTIMATORS)
        }
        return (
            worst
            | bayes
            | {f"dominates/{name}": float(yes) for name, yes in self.dominating_estimators.items()}
        )

    def figures(self) -> Figures:
        from components.figures.supervised.risk_functions import risk_functions

        figure = risk_functions(
            self.multiples,
            (self.risk, self.error),
            (self.bayes_risk, self.bayes_error),
            self.loss,
            self.data.is_simulated,
        )
        return {"wald": figure}


@dataclass(frozen=True, kw_only=True)
class RiskState(LinearState):
    """Sums over the data sets drawn so far, of x and of x² along the first dimension."""

    n: int = 0  # data sets
    risk: Tensor  # [2, E, M]
    gain: Tensor  # [2, E, M]
    bayes: Tensor  # [2, E]


@register("inference", "statistical_risk")
class StatisticalRisk(LinearAnalysis[RiskState]):
    """Wald's linear regression: risk functions of five estimators, with worst case and integral
    over the prior.

    R(β, β̃) = E_{y|X,β} L(β, β̃(y)), L = ((β − β̃)ᵀQ(β − β̃))^{α/2}, Q = I for ``loss`` estimation
    and XᵀX for prediction, by Monte Carlo on ``simulations`` data sets per step, with the same
    noise for every estimator and every β = r β₀, r in ``multiples``.  Estimators: least squares
    (constant risk; minimax for α = 2), James–Stein, which dominates it for α = 2 and D ≥ 3,
    James–Stein stopped at 0, ridge with the λ of Hoerl, Kennard & Baldwin, and the Bayes rule under
    the model's prior, which has the smallest integrated risk.  β₀ is the true value if the data are
    simulated, else an estimate.

    Raises ConfigMismatchError for fewer than three coefficients, NumericalError if XᵀX is singular.

    Source: Bardenet (2021), eq. (1.2), (1.3), (1.4), (1.5); James & Stein (1961); Berger (1976)."""

    loss: Literal["estimation", "prediction"]
    loss_power: PositiveFloat
    multiples: Annotated[list[NonNegativeFloat], Field(min_length=2)]
    simulations: PositiveInt

    def init(self, model: Conjugate, problem: Supervised, rng: Rng) -> RiskState:
        data = read_linear_data(model, problem)
        if data.X.shape[1] < 3:
            raise ConfigMismatchError(
                f"dataset={problem.name}: James–Stein needs at least 3 coefficients, not {data.X.shape[1]}"
            )
        E = len(ESTIMATORS)
        M = len(self.multiples)
        blank = torch.zeros(2, E, M, dtype=torch.float64)
        return RiskState(model=model, data=data, risk=blank, gain=blank, bayes=blank[..., 0])

    def weights(self, fit: LeastSquares) -> Tensor:
        """Q of the loss [D, D]."""
        return fit.gram if self.loss == "prediction" else torch.eye(fit.dim).to(fit.gram)

    def losses(self, beta: Tensor, fit: LeastSquares, penalty: Tensor, free: int) -> Tensor:
        """L of every estimator on every data set, [E, R]; β [D] or [R, D]."""
        Q = self.weights(fit)
        error = estimates(fit, Q, penalty, free) - beta
        return (error @ Q * error).sum(-1).clamp_min(0).double() ** (self.loss_power / 2)

    def step(self, state: RiskState, batch: Batch, rng: Rng) -> tuple[RiskState, Info]:
        data = state.data
        model = state.model
        free = int(state.model.intercept)
        errors = data.errors(self.simulations, rng.noise)  # [R, N]
        count(forwards=errors.numel())
        noise_alone = least_squares(data.X, errors, data.known_noise)
        along = []
        # least squares of Xβ + e is β + least squares of e, with the same residuals
        for r in self.multiples:
            beta = r * data.beta
            along.append(
                self.losses(
                    beta,
                    dataclasses.replace(noise_alone, beta=beta + noise_alone.beta),
                    model.penalty,
                    free,
                )
            )
        risk = torch.stack(along, 1)  # [E, M, R]
        z = standard_normal((len(errors), len(data.beta)), rng.noise, errors)
        prior = (data.noise / model.penalty).sqrt() * z  # β ~ N(0, σ² diag(λ)⁻¹) [R, D]
        imagined = dataclasses.replace(noise_alone, beta=prior + noise_alone.beta)

        def add_sums(sums: Tensor, values: Tensor) -> Tensor:
            return sums + torch.stack([values.sum(-1), values.square().sum(-1)]).cpu()

        state = dataclasses.replace(
            state,
            n=state.n + self.simulations,
            risk=add_sums(state.risk, risk),
            gain=add_sums(state.gain, risk - risk[:1]),
            bayes=add_sums(state.bayes, self.losses(prior, imagined, model.penalty, free)),
        )
        worst = state.risk[0].amax(1) / state.n
        return state, {f"worst_risk/{name}": worst[e] for e, name in enumerate(ESTIMATORS)}

    def posterior(self, state: RiskState) -> Risks:
        n = max(state.n, 1)
        data = state.data

        def mean_and_error(sums: Tensor) -> tuple[Tensor, Tensor]:
            mean = sums[0] / n
            return mean, ((sums[1] / n - mean**2).clamp_min(0) / max(n - 1, 1)).sqrt()

        (risk, error), (gain, gain_error), (bayes, bayes_error) = (
            mean_and_error(sums) for sums in (state.risk, state.gain, state.bayes)
        )
        fit = data.fit
        Q = self.weights(fit)
        estimate = estimates(fit, Q, state.model.penalty, int(state.model.intercept))[
            int(bayes.argmin())
        ]
        return Risks(
            data=data,
            model=state.model,
            loss=self.loss,
            multiples=list(self.multiples),
            n=n,
            risk=risk,
            error=error,
            gain=gain,
            gain_error=gain_error,
            bayes_risk=bayes,
            bayes_error=bayes_error,
            chosen=estimate,
        )
