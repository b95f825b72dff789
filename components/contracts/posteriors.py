"""What can be asked of a posterior: metrics, attacks, figures and files read nothing else.

An inference method says in ``gives`` which of these its posteriors keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.sequences import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Shown = TypeVar("Shown", contravariant=True)  # the rows that a posterior reads


@runtime_checkable
class Predicts(Protocol):
    """A posterior predictive: the only ``predict`` there is."""

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive: ...  # x [B, D]


@runtime_checkable
class Redraws(Predicts, Protocol):
    """A posterior predictive that rests on draws of which there can be fewer: what an attack follows at each step."""

    def some(self, n: int, generator: torch.Generator | None) -> Predicts: ...  # None: always the same n


@runtime_checkable
class HoldsDraws(Protocol):
    """Draws θ of C chains, and the P' parameters with names that they stand for.

    Where R replicates are computed at once, C is R times the chains of each; ``of_replicate`` has those of one."""

    @property
    def replicates(self) -> int: ...  # R

    def of_replicate(self, r: int) -> HoldsDraws: ...

    @property
    def draws(self) -> Tensor: ...  # [C, N, P]

    @property
    def start(self) -> Tensor: ...  # [C, P] where the chains began

    @property
    def names(self) -> list[str]: ...  # of the P' parameters; empty where they have none

    @property
    def stats(self) -> dict[str, Tensor]: ...  # [C, N] each

    @property
    def log_weights(self) -> Tensor | None: ...  # [C, N], importance sampling only; unnormalised

    @property
    def n_chains(self) -> int: ...

    @property
    def n_draws(self) -> int: ...

    @property
    def flat(self) -> Tensor: ...  # [C·N, P]

    @property
    def values(self) -> Tensor: ...  # of the parameters [C, N, P']

    @property
    def weights(self) -> Tensor: ...  # of the draws [C·N], sum 1

    @property
    def mean(self) -> Tensor: ...  # estimate of E[parameters] [P']

    @property
    def second_moment(self) -> Tensor: ...  # of their squares [P']

    def expectation(self, f: Tensor) -> Tensor: ...  # estimate of E[f] from f [C·N, …] at all draws

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive: ...  # of K parameters at x [B, D]


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
    """Of s_t = E[y_t | x_t] given y_1:T its mean, and of a new observation of it the 90 % interval."""

    mean: Tensor  # [R, T, dy]
    lower: Tensor  # 5 % quantile of s_t and noise [R, T, dy]
    upper: Tensor  # 95 % quantile [R, T, dy]


@runtime_checkable
class SmoothedSignal(SmoothedStates, Protocol):
    """What lies behind the observations: what is scored where the truth of the signal is known, and not that of the states."""

    @property
    def signal(self) -> Signal | None: ...  # None: the noise of the observations is not known


@runtime_checkable
class FilteredStates(SmoothedStates, Protocol):
    """The same summaries, of p(x_t | y_1:t), for the times so far: T is ``t``."""

    @property
    def t(self) -> int: ...  # times filtered so far

    @property
    def predicted(self) -> Tensor: ...  # E[y_t | y_1:t−1] [R, T, dy]

    @property
    def log_normaliser(self) -> Tensor: ...  # log ∏_t ∫ G_t dπ_t|t−1 [R]

    @property
    def evidence(self) -> bool: ...  # whether the potentials G are likelihoods, and the normaliser the evidence


@runtime_checkable
class WeighsParticles(Protocol):
    """A filter's posterior that knows how evenly its particles were weighted before they were resampled."""

    @property
    def ess(self) -> Tensor | None: ...  # effective sample size [R, T]; None: not known


@runtime_checkable
class SeriesDraws(SmoothedStates, Protocol):
    """States that were drawn together with the parameters of a model of the whole series."""

    @property
    def parameters(self) -> HoldsDraws: ...  # [R·C, N, P]


@runtime_checkable
class Forecasts(Protocol):
    """Parameters of a series, each of which says what follows it: equal parts of a mixture."""

    def forecast(
        self, series: Series, horizon: int, generator: torch.Generator
    ) -> Predictive: ...  # of y_{T+1} … y_{T+H} given y_1:T [S, H, dy]

    def log_likelihood(self, series: Series) -> Tensor: ...  # log p(y_1:T | θ) of each draw [S]


@runtime_checkable
class ForecastsEach(Forecasts, Protocol):
    """Forecasts from every time at once, and of several times together."""

    def one_ahead(
        self, series: Series, n: int, generator: torch.Generator
    ) -> GaussianMixture: ...  # of each of the last n given all before it [S, n, 1]

    def paths(self, series: Series, horizon: int, generator: torch.Generator) -> Tensor: ...  # y_{T+1} … y_{T+H} [S, H]


class Part(NamedTuple):
    """What one block adds to a series."""

    name: str
    mean: Tensor  # [T]
    lower: Tensor  # 5 % quantile [T]
    upper: Tensor  # 95 % quantile [T]


@runtime_checkable
class Decomposes(Protocol):
    """A series taken apart: what each block adds, and what is left."""

    @property
    def series(self) -> Series: ...

    @property
    def components(self) -> list[Part]: ...  # empty: nothing is drawn yet

    @property
    def residuals(self) -> Tensor: ...  # of one-step forecasts, by their sd; NaN where nothing is seen [T]


@runtime_checkable
class Selects(Protocol):
    """Columns of which each draw takes some."""

    @property
    def inclusion(self) -> dict[str, float]: ...  # how often each is in

    @property
    def positive(self) -> dict[str, float]: ...  # and how often of these its coefficient is positive; never in: 1


class Affine(NamedTuple):
    """y_{T+1} … y_{T+H} ~ N(mean + Σ_ji D_·ji u_ji, covariance) given each draw, u_j of time T + j."""

    mean: Tensor  # with nothing put in from T on [S, H]
    covariance: Tensor  # [S, H, H]
    effect: Tensor  # D [S, H, H, c], 0 where j > h


@runtime_checkable
class AffineInInputs(Protocol):
    """What inputs to come make of a series."""

    def affine(self, series: Series, horizon: int, generator: torch.Generator) -> Affine: ...  # H ≤ what is known ahead


@runtime_checkable
class Played(Protocol):
    """What a decision maker has earned in t episodes, and what she would do now."""

    @property
    def rewards(self) -> Tensor: ...  # [R, t]

    @property
    def beside(self) -> Tensor: ...  # what each of M opponents got, and welfare [M + 1, R, t]; empty: not recorded

    @property
    def firsts(
        self,
    ) -> Tensor: ...  # share of moves that was action 0, hers and each opponent's [1 + M, R, t]; empty likewise

    @property
    def values(self) -> Tensor: ...  # [R, A] expected value of each of her actions in the present state

    @property
    def forecast(self) -> Tensor | None: ...  # [R, B] her belief about the opponents' next actions; None: she has none

    @property
    def beliefs(self) -> dict[str, Tensor]: ...  # scores of what she believes of her opponents [R]

    @property
    def s(self) -> Tensor: ...  # where the next episode begins [R, …]

    def values_at(self, s: Tensor) -> Tensor: ...  # ``values`` in states s [R, …]

    def policy_in(self, s: Tensor) -> Tensor: ...  # probabilities of her actions in states s [R, A]


@runtime_checkable
class BoundsLikelihood(Protocol[Shown]):
    """log p(x) of each row, or bounds on it.

    With w_s the S values of a row, E[w_s] ≤ E[log S⁻¹ Σ_s exp w_s] ≤ log p(x): importance weights log p(x, z_s) − log q(z_s|x)
    where z is drawn.  Where p(x) is known there is one value and no drawing.  Of counts and words, p is that of the words
    in an order, without a multinomial coefficient."""

    def log_weights(self, batch: Shown, n_samples: int, generator: torch.Generator) -> Tensor: ...  # [S, B] or [1, B]


@runtime_checkable
class PredictsRows(Protocol[Shown]):
    """A posterior predictive of rows without labels, its parameters integrated out."""

    def log_predictive(self, batch: Shown) -> Tensor: ...  # log p(x_b | training rows) [B]

    def clusters(self, batch: Shown) -> Tensor | None: ...  # p(z_b = k | x_b) [B, K]; None: there are none


@runtime_checkable
class KnowsDensity(Protocol):
    """A posterior of θ whose density may be known."""

    def log_density(self, theta: Tensor) -> Tensor | None: ...  # log q(θ), [n, P] -> [n]; None: it is not


@runtime_checkable
class Analyses(Protocol):
    """A posterior that has more to say than what it predicts: scores and figures of its own."""

    def scores(self) -> Mapping[str, Tensor | float]: ...  # numbers, or [R] where replicates are a dimension

    def figures(self) -> dict[str, Figure]: ...


@runtime_checkable
class WritesFiles(Protocol):
    """A posterior that leaves files of its own in a run's folder."""

    def artefacts(self, folder: Path) -> list[Path]: ...  # the paths written


@runtime_checkable
class Defends(Predicts, Protocol):
    """A defended classifier that can show what lies under its defence."""

    @property
    def undefended(self) -> Predicts: ...


@runtime_checkable
class HoldsFit(Predicts, Protocol):
    """A posterior that is an estimator and what it learnt, of which attacks ask ``contracts.capabilities``."""

    @property
    def estimator(self) -> object: ...

    @property
    def fitted(self) -> dict[str, Tensor]: ...


@runtime_checkable
class HoldsModule(Protocol):
    """A posterior made of a trained module, of which figures ask ``contracts.capabilities``."""

    @property
    def module(self) -> object: ...


POSTERIORS = {
    "predicts": Predicts,
    "redraws": Redraws,
    "holds_draws": HoldsDraws,
    "filtered_states": FilteredStates,
    "smoothed_states": SmoothedStates,
    "smoothed_signal": SmoothedSignal,
    "series_draws": SeriesDraws,
    "forecasts": Forecasts,
    "forecasts_each": ForecastsEach,
    "decomposes": Decomposes,
    "selects": Selects,
    "affine_in_inputs": AffineInInputs,
    "played": Played,
    "bounds_likelihood": BoundsLikelihood,
    "predicts_rows": PredictsRows,
    "analyses": Analyses,
    "writes_files": WritesFiles,
    "defends": Defends,
    "holds_fit": HoldsFit,
    "holds_module": HoldsModule,
}
