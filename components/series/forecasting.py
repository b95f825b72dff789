"""Sequence problems with a future: methods get the first observations, and their forecasts of the
others are scored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities.sequences import CategoricalSeries
from components.contracts.capabilities.structural import KnownResponse
from components.contracts.checks import NamedScores
from components.contracts.posteriors import (
    AffineInInputs,
    Forecasts,
    HoldsDraws,
    Selects,
    SmoothedStates,
    StructuralPosterior,
)
from components.contracts.predictive import Categorical, GaussianMixture, Predictive, concatenate
from components.contracts.roles import AtLeastTwo, Dataset
from components.contracts.sequences import FutureCovariates, Series
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.figures.attempts import attempt, draw_each
from components.figures.samples.trace import trace
from components.metrics.structural.coefficients import (
    CENTRAL,
    coefficient_table,
    effect_scores,
    effects_per_unit,
    parameter_rhats,
)
from components.series.budget.budget import Budget
from components.series.figures.advertising.effect import effect
from components.series.figures.advertising.spends import spends
from components.series.figures.coefficients import coefficients
from components.series.figures.components import components
from components.series.figures.forecast import forecast
from components.series.figures.inclusion import inclusion
from components.series.figures.residuals import residuals
from components.series.maths.seasons import seasonal_errors
from components.series.planned import PlannedBudget, plan_series_budget
from components.series.scores.forecasts import of_numbers, score_class_forecasts
from components.series.scores.sales import score_intervention, score_sales_forecast
from components.series.sequence import Sequence

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures

LAG = "_lag"  # suffix that Koyck's form adds to the name of a column

# smallest inclusion probability of selected columns: the median probability model
INCLUSION_THRESHOLD = 0.5


def score_selection(
    inclusion: dict[str, float], coefficients: dict[str, float], inputs: list[str]
) -> dict[str, float]:
    """Shares of the relevant and of the irrelevant regressors that are selected; the same for
    inputs.

    Source: Barbieri and Berger (2004) for the ½; Gallego (2021), Figure 1.5.
    """
    hits_by_label: dict[str, list[float]] = {}
    for name, share in inclusion.items():
        bare = name.removesuffix(LAG)
        if bare in coefficients:
            label = "true_found" if coefficients[bare] else "idle_kept"
            label = f"inputs_{label}" if bare in inputs else label
            hits_by_label.setdefault(label, []).append(float(share >= INCLUSION_THRESHOLD))
    return {label: sum(hits) / len(hits) for label, hits in hits_by_label.items()}


Origin = Literal["end", "before"]

# also scored for one-step forecasts
ONE_STEP_SCORES = ("mae", "mape", "crps", "log_score", "coverage90", "coverage95")


@dataclass(frozen=True)
class Classes:
    """``CategoricalSeries``: a container of class numbers."""

    n_classes: int


@dataclass(kw_only=True)
class Forecasting(Sequence):
    """Series with the last H observations hidden from every method.

    ``origin: end`` forecasts all of them from the end of the observed part; ``before`` forecasts
    each from all earlier observations, with the parameters learned from the observed part.
    """

    future: Tensor  # [R, H, dy]; NaN: not observed
    # regressors and inputs of the H times, if any, known in advance
    beyond: FutureCovariates | None = None
    origin: Origin = "end"
    intervention: bool = False  # the future follows an intervention: forecasts are counterfactual
    budget: Budget | None = None  # of the inputs, to be planned
    season: int = 1  # length of a season in the naive forecast that scales errors
    # Cache of the last plan and its affine form, for the scores, figures and tables of one
    # evaluation.
    _planned: tuple[AffineInInputs, PlannedBudget] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None:
            self.budget.check(self.input_names, self.future.shape[1])

    @property
    def full_series(self) -> Series:
        """Observed part and future, as one series."""
        y = torch.cat([self.observations, self.future], 1)
        later = self.beyond

        def append_time(value: Tensor | None, after: Tensor | None) -> Tensor | None:
            return None if value is None or after is None else torch.cat([value, after])

        x = append_time(self.regressors, later and later.x)
        u = append_time(self.inputs, later and later.u)
        return Series(y, x, y.isnan().any(-1), u, dates=self.dates)

    @property
    def series(self) -> Series:
        """The observed part, with the inputs and regressors of the future."""
        return super().series._replace(ahead=self.beyond)

    def forecast(self, posterior: Forecasts, rng: Rng) -> Predictive:
        """Forecast of the future [S, H, dy]."""
        horizon = self.future.shape[1]
        series = self.series
        if self.origin == "end":
            return posterior.forecast(series, horizon, rng.at("evaluation", 0))
        if isinstance(posterior, StructuralPosterior):
            return posterior.one_ahead(self.full_series, horizon, rng.at("evaluation", 0))
        parts = []
        for h in range(horizon):
            y = torch.cat([self.observations, self.future[:, :h]], 1)
            grown = Series(y, None, y.isnan().any(-1))
            # reproducible draws
            parts.append(posterior.forecast(grown, 1, rng.at("evaluation", 0)))
        return concatenate(parts)

    def score(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> NamedScores:
        """Scores of a posterior.

        Parameter draws get the scores of their forecasts, with the log-likelihood of the observed
        part averaged over the draws; other posteriors get the scores of a sequence.
        """
        out = super().score(posterior, rng)
        if not isinstance(posterior, Forecasts):
            return out
        y = self.future[0]
        if isinstance(posterior, StructuralPosterior) and self.intervention:
            without = posterior.joint_forecast(self.series, len(y), rng.at("evaluation", 0))
            return out | score_intervention(without, y[:, 0])
        # nothing to score: the whole future is unobserved
        if not bool(y.isnan().all()):
            out |= self._score_forecasts(posterior, rng)
        if isinstance(posterior, Selects):
            out |= self._score_inclusion(posterior)
        if (planned := self.plan_budget(posterior, rng)) is not None:
            out |= planned.scores()
        return out

    def _score_forecasts(self, posterior: Forecasts, rng: Rng) -> dict[str, float]:
        y = self.future[0]
        dates = self.dates[self.observations.shape[1] :]
        predictive = self.forecast(posterior, rng)
        if isinstance(predictive, Categorical):
            return score_class_forecasts(predictive, y)
        assert isinstance(predictive, GaussianMixture)
        out = of_numbers(predictive, y)
        if (scale := self._naive_error()) > 0:
            out["mase"] = out["mae"] / scale
        if not isinstance(posterior, StructuralPosterior):
            return out
        out |= score_sales_forecast(predictive, y[:, 0], dates)
        if self.origin == "end":
            each = posterior.one_ahead(self.full_series, len(y), rng.at("evaluation", 0))
            scores = of_numbers(each, y) | score_sales_forecast(each, y[:, 0], dates)
            out |= {f"one_ahead/{name}": scores[name] for name in ONE_STEP_SCORES if name in scores}
        return out

    def _naive_error(self) -> float:
        """Mean absolute error of the seasonal naive forecast on the observed part; NaN if the
        series is shorter than a season or multivariate.

        Source: Hyndman and Koehler (2006), section 2.5."""
        if self.observations.shape[-1] > 1:
            return math.nan
        return float(seasonal_errors(self.observations[0, :, 0], self.season).abs().mean())

    def _score_inclusion(self, posterior: Selects) -> NamedScores:
        out: NamedScores = {}
        out |= {f"inclusion/{name}": share for name, share in posterior.inclusion.items()}
        out |= {f"long_run/{name}": float(v.median()) for name, v in posterior.long_run.items()}
        if isinstance(posterior, HoldsDraws):
            out |= {f"rhat/{name}": value for name, value in parameter_rhats(posterior).items()}
            out |= effect_scores(posterior, posterior) if posterior.n_draws else {}
        if isinstance(self.system, KnownResponse):
            out |= score_selection(posterior.inclusion, self.system.coefficients, self.input_names)
        return out

    def draw(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> Figures:
        figures = super().draw(posterior, rng)
        if not isinstance(posterior, Forecasts):
            return figures
        if isinstance(posterior, StructuralPosterior) and self.intervention:
            figures |= attempt("figure effect", self._draw_effect, posterior, rng)
        else:
            figures |= attempt("figure forecast", self._draw_forecast, posterior, rng)
        if isinstance(posterior, StructuralPosterior):
            figures |= draw_each((components, residuals), posterior)
            if isinstance(posterior, HoldsDraws):
                figures |= draw_each((trace,), None, posterior)
            if self.input_names:
                figures |= attempt("figure spends", self._draw_spends)
        if isinstance(posterior, Selects):
            figures |= draw_each((inclusion,), posterior)
            figures |= attempt("figure coefficients", self._draw_coefficients, posterior)
        return figures | attempt("figure budget", self._draw_budget, posterior, rng)

    def _draw_effect(self, posterior: StructuralPosterior, rng: Rng) -> Figures:
        future = self.future[0, :, 0]
        without = posterior.joint_forecast(self.series, len(future), rng.at("evaluation", 0))
        return effect(self.observations[0, :, 0], future, without, self.dates, self.value_label)

    def _draw_forecast(self, posterior: Forecasts, rng: Rng) -> Figures:
        history = self.observations[0, :, 0]
        future = self.future[0, :, 0]
        predictive = self.forecast(posterior, rng)
        return forecast(history, future, predictive, self.dates, self.value_label)

    def _draw_spends(self) -> Figures:
        u = self.inputs if self.full_series.u is None else self.full_series.u
        return {} if u is None else spends(u, self.input_names, self.dates)

    def _draw_coefficients(self, posterior: Selects) -> Figures:
        if not isinstance(posterior, HoldsDraws) or not posterior.n_draws:
            return {}
        return coefficients(effects_per_unit(posterior, posterior), posterior)

    def _draw_budget(self, posterior: Forecasts, rng: Rng) -> Figures:
        planned = self.plan_budget(posterior, rng)
        return {} if planned is None else planned.figures()

    def tables(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> dict[str, pd.DataFrame]:
        """Tables of numeric forecasts with central 95 % intervals, time by time, and budget
        plans."""
        out: dict[str, pd.DataFrame] = {}
        if isinstance(posterior, Forecasts) and isinstance(
            predictive := self.forecast(posterior, rng), GaussianMixture
        ):
            dates = self.dates[self.observations.shape[1] :]
            out["forecast"] = forecast_table(predictive, self.future[0, :, 0], list(dates))
        if (
            isinstance(posterior, Selects)
            and isinstance(posterior, HoldsDraws)
            and posterior.n_draws
        ):
            out["coefficients"] = coefficient_table(posterior, posterior)
        if (planned := self.plan_budget(posterior, rng)) is not None:
            out |= planned.tables()
        return out

    def plan_budget(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> PlannedBudget | None:
        """Best use of the budget.

        None if the problem has no budget, or the posterior has no effects of inputs.
        """
        if (
            self.budget is None
            or self.budget.total is None
            or not isinstance(posterior, AffineInInputs)
        ):
            return None
        if self._planned is None or self._planned[0] is not posterior:
            affine = posterior.affine(self.series, self.budget.weeks, rng.at("evaluation", 0))
            truth = self.system if isinstance(self.system, KnownResponse) else None
            generator = rng.at("evaluation", 1)
            self._planned = (
                posterior,
                plan_series_budget(
                    self.budget, self.series, self.input_names, affine, truth, generator
                ),
            )
        return self._planned[1]

    def describe(self) -> dict[str, str]:
        return super().describe() | {"to be forecast": f"{self.future.shape[1]:,}"}


def forecast_table(found: GaussianMixture, y: Tensor, dates: list[str]) -> pd.DataFrame:
    """A row for each of H times: its date or its lead, mean, sd, central 95 % interval, and the
    actual value."""
    import pandas as pd

    columns = {"mean": found.mean, "sd": found.variance.sqrt()}
    columns |= {"lower95": found.quantile(CENTRAL[0]), "upper95": found.quantile(CENTRAL[1])}
    numbers = {name: value[:, 0].tolist() for name, value in columns.items()}
    times: list[str] | list[int] = dates or list(range(1, len(y) + 1))
    return pd.DataFrame({"time": times, **numbers, "observed": y.tolist()})


def split(
    sequence: Sequence,
    n_ahead: int,
    origin: Origin,
    budget: Budget | None = None,
    intervention: bool = False,
    season: int = 1,
) -> Forecasting:
    """Split off the last observations of a sequence as its future; regressors and inputs stay
    known.

    Raises:
        ConfigMismatchError: no observations are left, or the budget is inconsistent.
    """
    n = sequence.observations.shape[1] - n_ahead
    if n < 1:
        raise ConfigMismatchError(
            f"dataset.n_ahead={n_ahead}: there are {n + n_ahead} observations; leave some for training"
        )
    fields = {
        name: value for name, value in vars(sequence).items() if name not in ("kind", "replicates")
    }
    for name in ("states", "means", "clean"):
        fields[name] = None if fields[name] is None else fields[name][:, :n]
    later: dict[str, Tensor] = {}
    for name, key in (("regressors", "x"), ("inputs", "u")):
        if fields[name] is not None:
            later[key] = fields[name][n:]
            fields[name] = fields[name][:n]
    fields["observations"] = sequence.observations[:, :n]
    fields["future"] = sequence.observations[:, n:]
    fields |= {"beyond": FutureCovariates(**later) if later else None, "origin": origin}
    return Forecasting(**fields, budget=budget, intervention=intervention, season=season)


class ClassSeries(Dataset[Forecasting]):
    """Series of class numbers; the last ``n_ahead`` are to be forecast."""

    kind = "sequence"
    traits = {"class_series", "unknown_states"}
    simulates = {CategoricalSeries}

    n_steps: PositiveInt
    n_ahead: PositiveInt
    origin: Origin
    classes: AtLeastTwo

    def hide_future(self, y: Tensor) -> Forecasting:
        """The problem of the classes y [1, T, 1].

        Raises:
            ConfigMismatchError: no observations are left to learn from.
        """
        sequence = Sequence(
            name=self.name,
            states=None,
            observations=y,
            system=Classes(self.classes),
            state_names=["class"],
        )
        return split(sequence, self.n_ahead, self.origin)
