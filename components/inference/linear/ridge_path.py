"""Ridge regression over a range of penalties, and the choice of the penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.roles import AtLeastTwo, Info
from components.contracts.streams import Rng
from components.inference.linear.known_data import (
    LinearAnalysis,
    LinearState,
    plug_in,
    read_linear_data,
)
from components.maths.conjugate_regression import coefficients
from components.maths.least_squares import LinearData, hkb_penalty, ridge_risk
from components.models.linear.ridge import effective_parameters, generalised_cross_validation
from components.models.linear.ridge import ridge_path as path_of
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    from components.figures.style import Figures

Choice = Literal["gcv", "loo", "evidence", "hkb"]


@dataclass(frozen=True)
class RidgeEstimates:
    """Estimates for each penalty, selection criteria, and the exact risk of each penalty if β is
    known."""

    data: LinearData
    model: Conjugate
    choice: str
    penalties: Tensor  # λ [Λ], increasing
    path: Tensor  # [Λ, D]
    df: Tensor  # effective parameters [Λ]
    # gcv, loo: minimised; evidence: log, maximised; [Λ] each
    criteria: dict[str, Tensor]
    variance: Tensor  # σ² tr W G Wᵀ [Λ]
    bias: Tensor  # ‖(WG − I)β‖² [Λ]
    hkb: float  # D σ̂²/‖β̂‖², without the intercept

    @property
    def selected(self) -> dict[str, float]:
        """λ selected by every rule."""
        place = {
            name: int(v.argmax() if name == "evidence" else v.argmin())
            for name, v in self.criteria.items()
        }
        return {name: float(self.penalties[i]) for name, i in place.items()} | {"hkb": self.hkb}

    @property
    def best(self) -> float:
        """λ with the smallest risk, which depends on the true β."""
        return float(self.penalties[(self.variance + self.bias).argmin()])

    def estimate(self, penalty: float) -> Tensor:
        free = int(self.model.intercept)
        return path_of(self.data.X, self.data.y, self.penalties.new_tensor([penalty]), free)[0]

    def risk(self, penalty: float) -> float:
        columns = self.data.X.new_ones(self.data.X.shape[1])
        columns[: int(self.model.intercept)] = 0
        data = self.data
        parts = ridge_risk(
            data.fit.gram,
            data.beta,
            data.noise,
            penalty * columns,
            torch.eye(len(columns)).to(data.X),
        )
        return float(sum(parts))

    def predict(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """N(xᵀβ̂_λ, σ̂²) at x [B, D], with λ by ``choice``."""
        return plug_in(self.data, self.model, self.estimate(self.selected[self.choice]), x)

    def scores(self) -> dict[str, float]:
        out = {f"penalty/{name}": value for name, value in self.selected.items()}
        risks = {
            f"ridge_risk/{name}": self.risk(value)
            for name, value in (self.selected | {"best": self.best}).items()
        }
        return out | risks | {"ridge_risk/least_squares": self.risk(0.0)}

    def figures(self) -> Figures:
        from components.figures.supervised.ridge_trace import ridge_trace

        figure = ridge_trace(
            self.data,
            self.penalties,
            self.path,
            self.selected,
            variance=self.variance,
            bias=self.bias,
            least_squares_risk=self.risk(0.0),
        )
        return {"hoerl_kennard": figure}


@register("inference", "ridge_path")
class RidgePath(LinearAnalysis[LinearState]):
    """Hoerl and Kennard's linear regression: ridge trace, four rules for the penalty, and the exact
    risk of each.

    β̂_λ = (XᵀX + λI)⁻¹Xᵀy for ``number`` penalties between ``lowest`` and ``highest`` times the
    mean of the diagonal of XᵀX; an intercept is not penalised.  β̂_λ is the Bayes rule for squared
    loss under β ~ N(0, σ²/λ).  λ is chosen by generalised cross-validation, by (exact)
    leave-one-out cross-validation, by the evidence p(y | X, λ) under the model's prior of σ², or as
    D σ̂²/‖β̂‖² for D penalised coefficients.  For every β there is a λ > 0 with smaller risk than
    least squares.  All results are computed in one step.

    Raises NumericalError if XᵀX is singular.

    Source: Hoerl & Kennard (1970), eq. (2.3), Theorem 4.3; Hoerl, Kennard & Baldwin (1975);
    Bardenet (2021), sections 1.4 and 2.2."""

    lowest: PositiveFloat
    highest: PositiveFloat
    number: AtLeastTwo
    choice: Choice

    @model_validator(mode="after")
    def _check_order(self) -> RidgePath:
        if self.lowest >= self.highest:
            raise ValueError(f"lowest: {self.lowest} must be below highest, {self.highest}")
        return self

    def init(self, model: Conjugate, problem: Supervised, rng: Rng) -> LinearState:
        data = read_linear_data(model, problem)
        # raises before the first step if the least squares estimate does not exist
        _ = data.fit
        return LinearState(model=model, data=data)

    def step(self, state: LinearState, batch: Batch, rng: Rng) -> tuple[LinearState, Info]:
        return state, {}

    def posterior(self, state: LinearState) -> RidgeEstimates:
        data = state.data
        model = state.model
        X = data.X
        y = data.y
        fit = data.fit
        free = int(model.intercept)
        columns = X.new_ones(X.shape[1])
        columns[:free] = 0
        unit = float(fit.gram.diagonal()[free:].mean())
        exponents = torch.linspace(
            math.log10(self.lowest), math.log10(self.highest), self.number, dtype=torch.float64
        )
        penalties = (unit * 10**exponents).to(X)
        identity = torch.eye(len(columns)).to(X)
        noise = data.noise
        curves: dict[str, list[Tensor]] = {
            name: [] for name in ("df", "gcv", "loo", "evidence", "variance", "bias")
        }
        for penalty in penalties:
            penalty_vector = penalty * columns
            ridge_fit = coefficients(X, y, penalty_vector)
            residual = y - X @ ridge_fit.m
            leverage = (X @ ridge_fit.covariance * X).sum(1)  # diagonal of X(XᵀX + λ)⁻¹Xᵀ
            variance, bias = ridge_risk(fit.gram, data.beta, noise, penalty_vector, identity)
            # proper in every column
            prior = coefficients(X, y, torch.where(columns > 0, penalty, model.penalty))
            curves["df"].append(X.new_tensor(effective_parameters(X, penalty_vector)))
            curves["gcv"].append(X.new_tensor(generalised_cross_validation(X, y, penalty_vector)))
            curves["loo"].append((residual / (1 - leverage)).square().mean())  # PRESS/N
            curves["evidence"].append(prior.log_evidence_under(model.noise))
            curves["variance"].append(variance)
            curves["bias"].append(bias)
        rows = {name: torch.stack(values) for name, values in curves.items()}
        return RidgeEstimates(
            data=data,
            model=model,
            choice=self.choice,
            penalties=penalties,
            path=path_of(X, y, penalties, free),
            df=rows["df"],
            criteria={name: rows[name] for name in ("gcv", "loo", "evidence")},
            variance=rows["variance"],
            bias=rows["bias"],
            hkb=float(hkb_penalty(fit, free)),
        )
