"""The seasonal naive forecast, a baseline without a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.costs.counts import count
from components.contracts.predictive import GaussianMixture
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.maths.seasons import carry_seasons, seasonal_errors
from components.series.sequence import Sequence


@dataclass(frozen=True)
class SeasonalWalk:
    """``Forecasts`` of a random walk with a season."""

    variance: Tensor  # variance s² of the errors [1]
    period: int

    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> GaussianMixture:
        carried = carry_seasons(series.y[0, :, 0], self.period)
        h = torch.arange(horizon, device=carried.device)
        mean = carried[-self.period :][h % self.period]
        if bool(mean.isnan().any()):
            raise ConfigMismatchError(
                f"inference.period={self.period}: one time of the season was never observed; lower the period"
            )
        variance = (1 + h // self.period) * self.variance
        return GaussianMixture(mean.view(1, -1, 1), variance.view(1, -1, 1))

    def log_likelihood(self, series: Series) -> Tensor:
        errors = seasonal_errors(series.y[0, :, 0], self.period)
        terms = (2 * math.pi * self.variance).log() + errors.square() / self.variance
        return -0.5 * terms.sum().view(1)


@register("inference", "seasonal_naive")
class SeasonalNaive(Inference[Any, Sequence, Series, SeasonalWalk]):
    """Seasonal naive forecast: each time repeats the value of the previous season.

        y_{T+h} ~ N(y_{T+h−mk}, k s²),   k = ⌈h/m⌉,   s² = mean (y_t − y_{t−m})²

    m is ``period``; m = 1 gives a random walk.  A missing value is replaced by the value of the
    previous season.  No model is used.

    Raises:
        ConfigMismatchError: the series is shorter than two seasons, repeats itself exactly, or is
            multivariate.

    Source: Hyndman and Athanasopoulos (2021), section 5.2.
    """

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="series",
        capabilities=frozenset(),
        refused_traits={
            "class_series": "forecasts numbers",
            "several_numbers": "supports only univariate series",
        },
    )
    folds_replicates = frozenset()
    max_useful_steps = 1

    period: PositiveInt

    def init(self, model: Any, problem: Sequence, rng: Rng) -> SeasonalWalk:
        problem.check_single(f"inference={self.name}")
        return self._estimate(problem.series)

    def step(self, state: SeasonalWalk, batch: Series, rng: Rng) -> tuple[SeasonalWalk, Info]:
        return self._estimate(batch), {}

    def _estimate(self, series: Series) -> SeasonalWalk:
        """State of the series.

        Raises:
            ConfigMismatchError: the errors cannot be estimated.
        """
        errors = seasonal_errors(series.y[0, :, 0], self.period)
        if not len(errors):
            raise ConfigMismatchError(
                f"inference.period={self.period}: the series has no two values a season apart; lower the period"
            )
        if not bool(errors.any()):
            raise ConfigMismatchError(
                f"inference.period={self.period}: the series repeats itself exactly, so its error is 0"
            )
        count(forwards=len(errors))
        return SeasonalWalk(errors.square().mean().view(1), self.period)

    def posterior(self, state: SeasonalWalk) -> SeasonalWalk:
        return state
