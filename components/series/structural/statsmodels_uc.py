"""Structural time series of statsmodels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.costs.counts import count
from components.contracts.predictive import GaussianMixture
from components.contracts.roles import AtLeastTwo, Inference, Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import require_package
from components.registry import register
from components.series.sequence import Sequence
from components.series.structural.seasonal_naive import SeasonalNaive


@dataclass(frozen=True, kw_only=True)
class UnobservedComponentsFit:
    """``Forecasts`` of the package's model at fixed parameters."""

    keys: dict[str, Any] = not_checkpointed()  # of ``UnobservedComponents``
    theta: list[float] | None = None  # variances [P]

    def build(self, series: Series) -> Any:
        """The package's model of a series."""
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        return UnobservedComponents(series.y[0, :, 0].cpu().numpy(), **self.keys)

    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> GaussianMixture:
        predicted = self.build(series).filter(self.theta).get_forecast(horizon)
        return GaussianMixture(
            *(
                series.y.new_tensor(values)[None, :, None]
                for values in (predicted.predicted_mean, predicted.var_pred_mean)
            )
        )

    def log_likelihood(self, series: Series) -> Tensor:
        return series.y.new_tensor([self.build(series).loglike(self.theta)])


@register("inference", "statsmodels_uc")
class StatsmodelsUC(Inference[Any, Sequence, Series, UnobservedComponentsFit]):
    """Maximum likelihood of a structural time series by ``UnobservedComponents`` of statsmodels.

        θ̂ = argmax log p(y_{d+1:T} | θ),  θ the variances, d states

    The optimizer is L-BFGS with finite differences, of at most ``iterations``, in the first step.
    Initial states have a variance of 10⁶, and the first d observations do not enter the likelihood.
    Regressors, inputs and the model are not used.  Info: log_likelihood, converged.

    Raises ConfigMismatchError if the package is not installed.

    Source: Seabold and Perktold (2010); Harvey (1989), section 3.4."""

    requires = SeasonalNaive.requires
    folds_replicates = frozenset()
    max_useful_steps = 1

    level: Literal["local level", "local linear trend"]
    seasonal: AtLeastTwo | None
    freq_seasonal: list[dict[Literal["period", "harmonics"], PositiveInt]]
    iterations: PositiveInt

    def init(self, model: Any, problem: Sequence, rng: Rng) -> UnobservedComponentsFit:
        require_package("statsmodels", f"inference={self.name}", "peers")
        problem.check_single(f"inference={self.name}")
        return UnobservedComponentsFit(keys=self.model_dump(exclude={"name", "iterations"}))

    def step(
        self, state: UnobservedComponentsFit, batch: Series, rng: Rng
    ) -> tuple[UnobservedComponentsFit, Info]:
        if state.theta is not None:
            return state, {}
        fit = state.build(batch).fit(disp=False, maxiter=self.iterations, cov_type="none")
        evaluations = fit.mle_retvals["fcalls"]
        count(densities=evaluations, forwards=evaluations * batch.y.shape[1])
        info = {"log_likelihood": float(fit.llf), "converged": float(fit.mle_retvals["converged"])}
        return replace(state, theta=fit.params.tolist()), info

    def posterior(self, state: UnobservedComponentsFit) -> UnobservedComponentsFit:
        return state
