"""Linear regression by maximum likelihood, with its confidence region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.costs.counts import count
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, Info
from components.contracts.streams import Rng
from components.inference.linear.known_data import (
    LinearAnalysis,
    LinearState,
    plug_in,
    read_linear_data,
)
from components.maths.least_squares import LeastSquares, LinearData
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    from components.figures.style import Figures

LEVELS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]  # for the coverage check, in addition to ``level``
SHOWN = 400  # number of estimates from repeated data sets in a figure


@dataclass(frozen=True)
class MaximumLikelihoodEstimate:
    """β̂, its confidence region, and the coverage of such regions over repeated data."""

    data: LinearData
    model: Conjugate
    level: float
    inside: dict[float, int]  # level -> data sets with β inside the region
    n: int  # repeated data sets
    cloud: Tensor  # estimates of the first data sets [≤ SHOWN, D]

    @property
    def fit(self) -> LeastSquares:
        return self.data.fit

    def coverage(self, level: float) -> tuple[float, float]:
        """Share of the repeated regions of ``level`` that contain β, and its standard error."""
        share = self.inside[level] / self.n
        return share, (level * (1 - level) / self.n) ** 0.5

    def predict(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """N(xᵀβ̂, σ̂²) at x [B, D]."""
        return plug_in(self.data, self.model, self.fit.beta, x)

    def scores(self) -> dict[str, float]:
        return {"coverage/confidence": self.coverage(self.level)[0]}

    def figures(self) -> Figures:
        from components.figures.supervised.confidence_region import confidence_region

        coverage = {level: self.coverage(level) for level in self.inside}
        figure = confidence_region(self.data, self.level, self.cloud, coverage, self.n)
        return {"fisher": figure}


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihoodState(LinearState):
    """Running counts from the repeated data sets."""

    n: int = 0  # repeated data sets
    inside: Tensor  # number with β inside the region, at each of ``levels``
    cloud: Tensor  # estimates of the first data sets [≤ SHOWN, D]


@register("inference", "maximum_likelihood")
class MaximumLikelihood(LinearAnalysis[MaximumLikelihoodState]):
    """Fisher's linear regression: maximum likelihood with a simulated-coverage ellipsoid.

    β̂ = (XᵀX)⁻¹Xᵀy ~ N(β, σ²(XᵀX)⁻¹), confidence ellipsoid {β : σ⁻²(β − β̂)ᵀXᵀX(β −
    β̂) ≤ α}, α the ``level`` quantile of χ²_D; if σ² is not known to the model, it is replaced by
    s² = rss/(N − D), and α is D times the quantile of F_{D,N−D}.  Every step draws ``simulations``
    new label vectors N(Xβ, σ²I) (β, σ² true if the data were simulated, else estimated) and counts
    the regions that contain β.

    Raises NumericalError if XᵀX is singular.

    Source: Bardenet (2021), section 1.1 and eq. (1.1).
    """

    level: BetweenZeroAndOne
    simulations: PositiveInt

    @property
    def levels(self) -> list[float]:
        return sorted({*LEVELS, self.level})

    def init(self, model: Conjugate, problem: Supervised, rng: Rng) -> MaximumLikelihoodState:
        data = read_linear_data(model, problem)
        empty = torch.zeros(len(self.levels), dtype=torch.long)
        return MaximumLikelihoodState(
            model=model, data=data, inside=empty, cloud=data.X.new_zeros(0, data.X.shape[1])
        )

    def step(
        self, state: MaximumLikelihoodState, batch: Batch, rng: Rng
    ) -> tuple[MaximumLikelihoodState, Info]:
        data = state.data
        repeated = data.sample_datasets(self.simulations, rng.noise)
        count(forwards=self.simulations * batch.n_rows)
        distance = repeated.distance(data.beta)  # [R]
        n_covered = torch.stack(
            [(distance <= repeated.radius(level)).sum() for level in self.levels]
        ).cpu()
        n = state.n + self.simulations
        inside = state.inside + n_covered
        cloud = torch.cat([state.cloud, repeated.beta])[:SHOWN]
        info = {"coverage": float(inside[self.levels.index(self.level)]) / n}
        return replace(state, n=n, inside=inside, cloud=cloud), info

    def posterior(self, state: MaximumLikelihoodState) -> MaximumLikelihoodEstimate:
        inside = dict(zip(self.levels, state.inside.tolist(), strict=True))
        return MaximumLikelihoodEstimate(
            state.data, state.model, self.level, inside, state.n, state.cloud
        )
