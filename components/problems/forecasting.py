"""Sequence problems with a future: methods see the first observations, and their forecasts of the others are scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from components.contracts.capabilities import KnownResponse
from components.contracts.posteriors import AffineInInputs, Forecasts, SmoothedStates
from components.contracts.predictive import Categorical, Predictive, concatenate
from components.contracts.sequences import Ahead, Series
from components.contracts.streams import Rng
from components.figures.sequences.forecast import forecast
from components.maths.budget.sum_law import SumLaw, numbers
from components.metrics.forecasts import of_classes, of_numbers
from components.problems.budget import Budget
from components.problems.planned import Planned
from components.problems.sequence import Sequence
from components.trouble import Misfit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Origin = Literal["end", "before"]


@dataclass(frozen=True)
class Classes:
    """What holds class numbers: ``CategoricalSeries``."""

    n_classes: int


@dataclass(kw_only=True)
class Forecasting(Sequence):
    """A series whose last H observations no method sees.

    ``origin: end`` forecasts all of them from the end of what was seen; ``before`` each from all that came before it, the
    parameters being still those learnt from what was seen."""

    future: Tensor  # [R, H, dy]; NaN: not observed
    beyond: Ahead | None = None  # regressors and inputs of the H times, where there are any: known beforehand
    origin: Origin = "end"
    budget: Budget | None = None  # of the inputs, to be planned

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None:
            self.budget.check(self.input_names, self.future.shape[1])

    @property
    def series(self) -> Series:
        """All that is seen, and what is known beforehand of the times that follow."""
        return super().series._replace(ahead=self.beyond)

    def forecast(self, posterior: Forecasts, rng: Rng) -> Predictive:
        """What is said of the future [S, H, dy]."""
        horizon, seen = self.future.shape[1], self.series
        if self.origin == "end":
            return posterior.forecast(seen, horizon, rng.at("evaluation", 0))
        parts = []
        for h in range(horizon):
            y = torch.cat([self.observations, self.future[:, :h]], 1)
            grown = Series(y, None, y.isnan().any(-1))
            parts.append(posterior.forecast(grown, 1, rng.at("evaluation", 0)))  # the same draws at every time
        return concatenate(parts)

    def score(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> dict[str, Tensor | float]:
        """Of parameters the scores of their forecasts, with the log-likelihood of what was seen, averaged over their draws; of
        anything else those of a sequence."""
        out = super().score(posterior, rng)
        if isinstance(posterior, Forecasts):
            found, y = self.forecast(posterior, rng), self.future[0]
            out |= of_classes(found, y) if isinstance(found, Categorical) else of_numbers(found, y)
        planned = self.planned(posterior, rng)
        return out if planned is None else out | planned.scores()

    def draw(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> dict[str, Figure]:
        drawn = super().draw(posterior, rng)
        if isinstance(posterior, Forecasts):
            drawn |= forecast(self.observations[0, :, 0], self.future[0, :, 0], self.forecast(posterior, rng))
        planned = self.planned(posterior, rng)
        return drawn if planned is None else drawn | planned.figures()

    def tables(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> dict[str, pd.DataFrame]:
        planned = self.planned(posterior, rng)
        return {} if planned is None else planned.tables()

    def planned(self, posterior: object, rng: Rng) -> Planned | None:
        """What the budget is best spent on.  None: nothing is to be planned, or the posterior does not know what inputs do."""
        if self.budget is None or self.budget.total is None or not isinstance(posterior, AffineInInputs):
            return None
        k, n = self.budget.weeks, self.observations.shape[1]
        found = posterior.affine(self.series, k, rng.at("evaluation", 0))
        law = SumLaw.of_draws(found.mean, found.effect.flatten(2), found.covariance.sum((1, 2)))
        u = None if self.inputs is None or self.beyond is None else self.beyond.u
        spent = None if u is None or self.inputs is None else torch.cat([self.inputs[-1:], u[: k - 1]])  # [k, c]
        known = self.system.effect(k).sum(0) if isinstance(self.system, KnownResponse) else None  # [k, c]
        return Planned(
            self.budget,
            self.input_names,
            list(self.dates[n - 1 : n - 1 + k]) or [f"T + {j}" if j else "T" for j in range(k)],
            law,
            None if spent is None else numbers(spent.flatten()),
            None if known is None else numbers(known.flatten()),
        )

    def describe(self) -> dict[str, str]:
        return super().describe() | {"to be forecast": f"{self.future.shape[1]:,}"}


def split(whole: Sequence, n_ahead: int, origin: Origin, budget: Budget | None = None) -> Forecasting:
    """A sequence without its last observations, which become the future; their regressors and inputs stay known.

    Raises:
        Misfit: nothing is left to be seen, or the budget does not fit.
    """
    n = whole.observations.shape[1] - n_ahead
    if n < 1:
        raise Misfit(f"dataset.n_ahead={n_ahead}: there are {n + n_ahead} observations; leave some to learn from")
    kept = {name: value for name, value in vars(whole).items() if name not in ("kind", "replicates")}
    for name in ("states", "means", "clean"):
        kept[name] = None if kept[name] is None else kept[name][:, :n]
    x, u = whole.regressors, whole.inputs
    beyond = None if x is None and u is None else Ahead(None if x is None else x[n:], None if u is None else u[n:])
    kept |= {"regressors": None if x is None else x[:n], "inputs": None if u is None else u[:n]}
    kept["observations"] = whole.observations[:, :n]
    return Forecasting(**kept, future=whole.observations[:, n:], beyond=beyond, origin=origin, budget=budget)
