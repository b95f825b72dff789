"""Posteriors with closed-form factors, and point masses as their limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.capabilities.densities import LogJoint
from components.contracts.capabilities.mean_field import (
    ClosedFormAscent,
    ClusterAscent,
    DensityOfFactors,
    Factors,
    RowsAscent,
)
from components.contracts.checks import NamedScores
from components.contracts.predictive import Predictive
from components.contracts.problems import Rows
from components.posteriors.draws import Draws

if TYPE_CHECKING:
    from components.figures.style import Figures


@dataclass(frozen=True)
class ObjectiveHistory:
    """Objective of each start by cycle."""

    title: str  # of the objective
    by_cycle: Tensor  # [T, S], T = 0 before the first

    def figures(self) -> Figures:
        from components.figures.variational.bound_by_start import bound_by_start

        return bound_by_start(self.by_cycle, self.title)


@dataclass(frozen=True, kw_only=True)
class FactorDraws(Draws):
    """q(θ) of the best start, and draws from it for predictions and scores; rows are scored by q
    itself if possible.
    """

    ascent: ClosedFormAscent
    factors: Factors  # only of the best start, S = 1
    objective: float  # nats: a lower bound on the log evidence of the training rows
    climb: ObjectiveHistory

    def scores(self) -> NamedScores:
        """Minus the bound."""
        return {"nelbo": -self.objective}

    def figures(self) -> Figures:
        return self.climb.figures()

    def log_predictive(self, batch: Rows) -> Tensor:
        """log E_q[p(x_b | θ)] [B]."""
        if isinstance(self.ascent, RowsAscent):
            return self.ascent.log_predictive(self.factors, batch)[0]
        return super().log_predictive(batch)

    def clusters(self, batch: Rows) -> Tensor | None:
        if isinstance(self.ascent, ClusterAscent):
            return self.ascent.responsibilities(self.factors, batch)[0]
        return super().clusters(batch)

    def log_density(self, theta: Tensor) -> Tensor | None:
        """log q(θ), [n, P] -> [n]; None if not known."""
        return (
            self.ascent.log_density(self.factors, theta)
            if isinstance(self.ascent, DensityOfFactors)
            else None
        )


@dataclass(frozen=True)
class PointMassPosterior:
    """δ(θ − θ̂) of the best start."""

    model: LogJoint
    theta: Tensor  # θ̂ [1, P]
    ascent: ClosedFormAscent
    factors: Factors  # S = 1
    objective: float  # log posterior or log-likelihood at θ̂, nats
    climb: ObjectiveHistory

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y | x, θ̂) at x [B, D]."""
        return Draws(self.theta[None], self.theta, model=self.model).predictive(self.theta, x)

    def scores(self) -> NamedScores:
        """The objective, and its location θ̂."""
        values = self.model.constrain(self.theta)[0].tolist()
        return {"objective": self.objective} | {
            f"mean/{name}": value for name, value in zip(self.model.names, values, strict=True)
        }

    def figures(self) -> Figures:
        return self.climb.figures()

    def log_predictive(self, batch: Rows) -> Tensor:
        """log p(x_b | θ̂) [B]."""
        assert isinstance(self.ascent, RowsAscent)
        return self.ascent.log_predictive(self.factors, batch)[0]

    def clusters(self, batch: Rows) -> Tensor | None:
        return (
            self.ascent.responsibilities(self.factors, batch)[0]
            if isinstance(self.ascent, ClusterAscent)
            else None
        )
