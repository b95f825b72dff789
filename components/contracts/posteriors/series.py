"""Posteriors of a series: states, signal, forecasts, components, and effects of inputs."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.posteriors.labels import HoldsDraws
from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.sequences import Series


@runtime_checkable
class SmoothedStates(Protocol):
    """Summaries of p(x_t | y_1:T) for all T times of R replicates."""

    @property
    def mean(self) -> Tensor: ...  # [R, T, dx]

    @property
    def variance(self) -> Tensor: ...  # [R, T, dx]

    @property
    def lower(self) -> Tensor: ...  # 5 % quantile [R, T, dx]

    @property
    def upper(self) -> Tensor: ...  # 95 % quantile [R, T, dx]


class Signal(NamedTuple):
    """Mean of s_t = E[y_t | x_t] given y_1:T, and 90 % interval of a new observation."""

    mean: Tensor  # [R, T, dy]
    lower: Tensor  # 5 % quantile of s_t and noise [R, T, dy]
    upper: Tensor  # 95 % quantile [R, T, dy]


@runtime_checkable
class SmoothedSignal(SmoothedStates, Protocol):
    """The signal behind the observations.

    It is scored if the true signal is known and the true states are not.
    """

    @property
    def signal(self) -> Signal | None: ...  # None if the noise of the observations is not known


@runtime_checkable
class FilteredStates(SmoothedStates, Protocol):
    """The same summaries of p(x_t | y_1:t), for the T = ``t`` times filtered so far."""

    @property
    def t(self) -> int: ...  # times filtered so far

    @property
    def predicted(self) -> Tensor: ...  # E[y_t | y_1:t−1] [R, T, dy]

    @property
    def log_normaliser(self) -> Tensor: ...  # log ∏_t ∫ G_t dπ_t|t−1 [R]

    @property
    # True if the potentials G are likelihoods, so that the normaliser is the evidence
    def evidence(self) -> bool: ...


@runtime_checkable
class SeriesDraws(SmoothedStates, Protocol):
    """States that are drawn jointly with the parameters of a model of the whole series."""

    @property
    def parameters(self) -> HoldsDraws: ...  # [R·C, N, P]


@runtime_checkable
class Forecasts(Protocol):
    """Forecasts from parameter draws of a series, as a mixture with equal weights."""

    # of y_{T+1} … y_{T+H} given y_1:T [S, H, dy]
    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> Predictive: ...

    def log_likelihood(self, series: Series) -> Tensor: ...  # log p(y_1:T | θ) of each draw [S]


class Part(NamedTuple):
    """Contribution of one block to a series."""

    name: str
    mean: Tensor  # [T]
    lower: Tensor  # 2.5 % quantile [T]
    upper: Tensor  # 97.5 % quantile [T]
    columns: dict[str, Tensor]  # mean contribution of each column of the block [T]


class ForecastMoments(NamedTuple):
    """Joint moments of y_{T+1} … y_{T+H} given y_1 … y_T and each of S draws with equal weights."""

    mean: Tensor  # [S, H]
    covariance: Tensor  # [S, H, H]

    def sums(self, weights: Tensor) -> GaussianMixture:
        """Exact distribution of K weighted sums of the H values, weights [K, H]: a mixture [S, K,
        1]."""
        variance = (weights @ self.covariance * weights).sum(2)
        return GaussianMixture((self.mean @ weights.T).unsqueeze(2), variance.unsqueeze(2))


@runtime_checkable
class StructuralPosterior(Forecasts, Protocol):
    """Draws of a structural series.

    They provide one-step forecasts from every time in one pass, joint forecasts of several times,
    and a decomposition of the series into the contributions of blocks and a residual.
    """

    # of each of the last n values given all earlier values [S, n, 1]
    def one_ahead(self, series: Series, n: int, generator: torch.Generator) -> GaussianMixture: ...

    def joint_forecast(
        self, series: Series, horizon: int, generator: torch.Generator
    ) -> ForecastMoments: ...

    @property
    def series(self) -> Series: ...

    @property
    def components(self) -> list[Part]: ...  # empty if not drawn yet

    @property
    # one-step forecast errors divided by their sd; NaN where y is missing [T]
    def residuals(self) -> Tensor: ...


@runtime_checkable
class Selects(Protocol):
    """Variable selection: each draw includes a subset of the columns."""

    @property
    def inclusion(self) -> dict[str, float]: ...  # inclusion probability of each column

    @property
    # probability that an included coefficient is positive; 1 if never included
    def positive(self) -> dict[str, float]: ...

    @property
    # total effect of one unit by input, for persistent effects [S]
    def long_run(self) -> dict[str, Tensor]: ...

    @property
    # units of the coefficients, relative to the columns: 1, or an sd
    def units(self) -> dict[str, float]: ...


class Affine(NamedTuple):
    """y_{T+1} … y_{T+H} ~ N(mean + Σ_ji D_·ji u_ji, covariance) given each draw, u_j of time T +
    j."""

    mean: Tensor  # without inputs from T on [S, H]
    covariance: Tensor  # [S, H, H]
    effect: Tensor  # D [S, H, H, c], 0 where j > h


@runtime_checkable
class AffineInInputs(Protocol):
    """Effect of future inputs on a series."""

    # H ≤ number of known future times
    def affine(self, series: Series, horizon: int, generator: torch.Generator) -> Affine: ...
