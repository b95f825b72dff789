"""Sequence problems: hidden states x_1 … x_T and observations y_1 … y_T, R replicates.

All replicates are processed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.attackers import Contamination, Injection
from components.contracts.capabilities.sequences import KnownParameters
from components.contracts.checks import NamedScores
from components.contracts.posteriors import (
    Analyses,
    FilteredStates,
    Forecasts,
    HoldsDraws,
    SeriesDraws,
    SmoothedSignal,
    SmoothedStates,
)
from components.contracts.problems import BatchKind, Kind, KnowsTruth
from components.contracts.requirements import Requirements
from components.contracts.sequences import Clean, Observation, Series
from components.contracts.sequences import LinearGaussianSystem as LinearGaussianSystem
from components.contracts.streams import Rng, SeparateStreams
from components.errors import ConfigMismatchError
from components.figures.attempts import ANALYSIS, attempt, draw_each
from components.problems.input_columns import InputColumns
from components.series.figures.effective_size import effective_size
from components.series.maths.dates import SHOWN, read_times
from components.series.scores import filtering
from components.series.scoring import PredictionScore

if TYPE_CHECKING:
    from components.figures.style import Figures

UNIVARIATE = Requirements(
    kinds={"sequence"}, refused_traits={"several_numbers": "supports only univariate series"}
)
ANOTHER = 1  # index of the random streams of an alternative realisation
Drawing = Callable[["Sequence", SmoothedStates], "Figures"]


def _select_named_states(posterior: SmoothedStates, names: int) -> SmoothedStates | None:
    """Posterior so far of the first coordinates of the states, those with names.

    A model may add derivatives.  None without observations or stored draws.
    """
    if posterior.mean.shape[1] == 0:
        return None
    if isinstance(posterior, SeriesDraws) and posterior.parameters.n_draws == 0:
        return None
    if posterior.mean.shape[2] > names and is_dataclass(posterior):
        # [R, T, dx]
        moments = {name: vars(posterior)[name] for name in ("mean", "variance", "lower", "upper")}
        return replace(posterior, **{name: value[..., :names] for name, value in moments.items()})
    return posterior


@dataclass
class Sequence(KnowsTruth):
    """Observations for a filter or a smoother, and the known part of the truth.

    Replicates differ in their observations; the states may be the same for all of them. An
    observation with a NaN coordinate is missing as a whole: filters and smoothers skip it, and
    scores leave it out.
    """

    kind: Kind = field(default="sequence", init=False)
    name: str
    states: Tensor | None  # [R or 1, T, dx]; None if the truth is unknown
    observations: Tensor  # [R, T, dy], corrupted if there is an attacker
    # source of the clean observations, if known, from which models take parameters
    system: object | None
    # of the first coordinates of the model's state, which are scored and plotted
    state_names: list[str]
    # of these coordinates; empty if unknown or dimensionless
    state_units: list[str] = field(default_factory=list, kw_only=True)
    # E[y_t | x_t] at the true states [R or 1, T, dy]: the observations without noise
    means: Tensor | None = None
    clean: Tensor | None = None  # the observations before an attacker corrupted them [R, T, dy]
    regressors: Tensor | None = None  # x_t with y_t, the same for all replicates [T, p]
    # of the p regressors, if they have names
    regressor_names: list[str] = field(default_factory=list)
    inputs: Tensor | None = None  # u_t, the input at t, the same for all replicates [T, c]
    input_names: list[str] = field(default_factory=list)  # of the c inputs, if any
    # ISO 8601, of the T times and the forecast ones; empty if times are counted
    dates: tuple[str, ...] = ()
    # other observations of the same states [R, T, dy]
    redraw: Callable[[torch.Generator], Tensor] | None = None
    # an alternative realisation, for a sequence with a hidden truth
    realise: Callable[[Rng], Sequence | None] | None = None
    scoring: PredictionScore = field(default_factory=PredictionScore)  # of one-step predictions
    figures: list[Drawing] = field(default_factory=list)
    # outliers by a rule of the dataset [T] bool, for figures
    suspect: Tensor | None = None
    # facts about the data for the terminal and the manifest
    about: dict[str, str] = field(default_factory=dict)
    # of a file, with its dates; None if only the names are known
    columns: InputColumns | None = None
    attacker: Contamination | Injection | None = None
    replicates: int = field(init=False)

    def __post_init__(self) -> None:
        self.replicates = self.observations.shape[0]
        self.scoring.check(self.observations)
        if self.dates and (unread := read_times(self.dates).isna()).any():
            text = self.dates[int(unread.argmax())]
            raise ConfigMismatchError(
                f"dataset={self.name}: the date {text!r} is not in ISO 8601; give dates as {SHOWN}"
            )

    def without_truth(self) -> Sequence:
        """The sequence that a method gets: without states or clean observations."""

        def realise(rng: Rng) -> Sequence | None:
            other = self.another(rng)  # drawn now, because some attackers need the truth
            return None if other is None else other.without_truth()

        return replace(self, states=None, means=None, clean=None, suspect=None, realise=realise)

    def attack(self, attacker: Contamination, rng: Rng) -> Sequence:
        """The same states with observations that the attacker corrupts once, before any inference.

        Observations that were already corrupted in the data are unchanged."""
        if self.clean is not None:
            return replace(self, attacker=attacker)
        corrupted = attacker.corrupt(Clean(self.observations.clone(), self.means, self.states), rng)
        return replace(self, observations=corrupted, clean=self.observations, attacker=attacker)

    def another(self, rng: Rng) -> Sequence | None:
        """An alternative realisation: other observations of the same states, corrupted by the same
        attacker.  None if the data are not simulated."""
        if self.realise is not None:
            return self.realise(rng)
        if self.redraw is None:
            return None
        streams = SeparateStreams(rng, ANOTHER)
        fresh = replace(self, observations=self.redraw(streams.data), clean=None, attacker=None)
        return (
            fresh.attack(self.attacker, streams)
            if isinstance(self.attacker, Contamination)
            else fresh
        )

    @property
    def state_labels(self) -> list[str]:
        """Names of the states with their units, if known, for axes."""
        units = self.state_units or [""] * len(self.state_names)
        return [
            f"{name}, {unit}" if unit else name
            for name, unit in zip(self.state_names, units, strict=True)
        ]

    @property
    def value_label(self) -> str:
        """Name of the first observed value with its unit, if known, for axes."""
        name, unit = self.state_names[0], self.about.get("unit", "").removeprefix("1 ")
        if not unit:
            return name
        scale, _, name_of_unit = unit.partition(" ")
        if scale[0].isdigit():
            return f"{name}, in units of {float(scale):.3g} {name_of_unit}"
        return f"{name}, {unit}"

    def check_one_number(self, choice: str) -> None:
        """Raise ConfigMismatchError if a univariate component is used for multivariate
        observations.
        """
        if self.observations.shape[2] != 1:
            raise ConfigMismatchError(
                f"{choice}: supports only univariate series, but dataset={self.name} is multivariate"
            )

    def check_single(self, choice: str) -> None:
        """Raise ConfigMismatchError if a component for one univariate series (``model=dlm``) is
        used for several series or values.
        """
        replicates, _, numbers = self.observations.shape
        if replicates > 1 or numbers != 1:
            raise ConfigMismatchError(
                f"{choice}: supports only one univariate series; dataset={self.name} has {replicates} of dimension {numbers}"
            )

    @property
    def missing(self) -> Tensor:
        """Indicator of missing observations, [R, T] bool."""
        return self.observations.isnan().any(-1)

    @property
    def is_corrupted(self) -> Tensor:
        """Indicator of observations that the attacker changed, [R, T] bool."""
        if self.clean is None:
            return torch.zeros_like(self.missing)
        is_missing = self.clean.isnan() & self.observations.isnan()
        return ((self.clean != self.observations) & ~is_missing).any(-1)

    def outliers(self, replicate: int, times: int, most: int) -> list[int]:
        """Times t of the most extreme corrupted and suspect observations, in time order.

        The distance among the first times is from E[y_t | x_t], or else from the observation before
        corruption, with each dimension in units of its median distance.
        """
        origin = self.clean if self.means is None else self.means
        if origin is None:
            return []
        index = slice(0, 1) if len(origin) == 1 else slice(replicate, replicate + 1)
        distance = (
            self.observations[replicate, :times] - origin[index][0, :times]
        ).abs()  # [T, dy]
        unit = distance.nanquantile(0.5, dim=0)
        size = torch.where(unit > 0, distance / unit, distance).norm(dim=1).nan_to_num(-1.0)
        hit = (
            self.is_corrupted[replicate]
            if self.suspect is None
            else self.is_corrupted[replicate] | self.suspect
        )
        size = size.masked_fill(~hit[:times].to(size.device), -1.0)
        largest = size.topk(min(most, times)).indices[:most]
        return sorted(int(t) + 1 for t in largest if size[t] > 0)

    @property
    def series(self) -> Series:
        """The observed series."""
        missing = self.missing if bool(self.missing.any()) else None
        return Series(self.observations, self.regressors, missing, self.inputs, dates=self.dates)

    def length(self, batch_kind: BatchKind) -> int | None:
        """T for observations one by one; None for the whole series, which has no end."""
        return self.observations.shape[1] if batch_kind == "observation" else None

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Observation | Series]]:
        """Batches of times start+1 … stop, up to T, or the whole series at every step."""
        y = self.observations
        x = self.regressors
        missing = self.missing
        # computed once, to avoid a synchronisation of the accelerator at every step
        some = missing.any(0).tolist()
        if batch_kind != "observation":
            series = self.series
            for step in range(start + 1, stop + 1):
                yield step, series
            return
        for t in range(start + 1, min(stop, y.shape[1]) + 1):
            now = t - 1
            yield (
                t,
                Observation(
                    t,
                    y[:, now],
                    None if x is None else x[now],
                    missing[:, now] if some[now] else None,
                ),
            )

    def score(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> NamedScores:
        """Scores over the times filtered so far, or over a whole smoothed series, [R] each.

        Without the truth, there are only predictive scores.

        The scores are NMSE and 90 % coverage, for each state dimension and averaged over them, and
        the median NMSE.  If only the true signal E[y_t | x_t] is known, a smoother has the NMSE of
        the signal and its coverage by the intervals of new observations, and a filter has the NMSE
        of its one-step predictions, because the noise has mean zero.  A filter also has the median
        absolute error of its one-step predictions of the observations (``scoring``), and the log
        evidence of its model if its normaliser estimates it.  Draws of parameters have means and
        convergence diagnostics and, if the states are integrated out, the log-likelihood averaged
        over the draws.  The number of missing observations is a score if there are any.
        """
        if isinstance(posterior, Forecasts):
            return self._of_parameters(posterior)
        marginals = _select_named_states(posterior, len(self.state_names))
        if marginals is None:
            return {}
        t = marginals.mean.shape[1]
        out: NamedScores = {}
        by_state: dict[str, Tensor] = {}
        if self.states is not None:
            states = self.states[:, :t]
            by_state["nmse"] = filtering.nmse(states, marginals.mean)  # [R, dx]
            by_state["coverage90"] = filtering.coverage(
                states, marginals.lower, marginals.upper
            )  # [R, dx]
        else:
            out |= self._score_signal(marginals)
        out |= {metric: filtering.mean_over_states(values) for metric, values in by_state.items()}
        if self.states is not None and len(self.state_names) > 2:  # the mean of two is their median
            out["nmse_median"] = filtering.median_over_dimensions(by_state["nmse"])
        if isinstance(marginals, FilteredStates):
            out |= self._score_predictions(marginals)
        if isinstance(marginals, SeriesDraws):
            out |= filtering.parameter_scores(marginals.parameters, self._true_parameters)
        for metric, values in by_state.items():
            out |= {f"{metric}/{name}": values[:, j] for j, name in enumerate(self.state_names)}
        if isinstance(marginals, Analyses):
            out |= marginals.scores()
        missing = self.missing[:, :t]
        if missing.any():
            out["missing"] = missing.sum(1).to(self.observations)
        return out if self.replicates > 1 else {name: float(v) for name, v in out.items()}

    def _score_signal(self, marginals: SmoothedStates) -> NamedScores:
        """Scores of a smoothed signal, or of a filter's predictions of this signal, if the true
        signal is known.
        """
        if self.means is None:
            return {}
        truth = self.means[:, : marginals.mean.shape[1]]
        if isinstance(marginals, FilteredStates):
            return {"nmse": filtering.mean_over_states(filtering.nmse(truth, marginals.predicted))}
        signal = marginals.signal if isinstance(marginals, SmoothedSignal) else None
        if signal is None:
            return {}
        coverage = filtering.coverage(truth, signal.lower, signal.upper).mean(1)
        nmse = filtering.mean_over_states(filtering.nmse(truth, signal.mean))
        return {"nmse": nmse, "coverage90": coverage}

    def _score_predictions(self, filtered: FilteredStates) -> NamedScores:
        """Scores of one-step predictions of the observations."""
        out: NamedScores = {}
        medae = self.scoring(self.observations, filtered.predicted)
        if medae is not None:
            out["medae"] = medae
        if filtered.evidence:
            out["log_evidence"] = filtered.log_normaliser
        return out

    @property
    def _true_parameters(self) -> Mapping[str, float]:
        return self.system.parameters if isinstance(self.system, KnownParameters) else {}

    def _of_parameters(self, posterior: Forecasts) -> NamedScores:
        """Scores of parameters without states, for one series."""
        out: NamedScores = {"log_likelihood": float(posterior.log_likelihood(self.series).mean())}
        if isinstance(posterior, HoldsDraws) and posterior.n_draws > 0:
            scores = filtering.parameter_scores(posterior, self._true_parameters)
            out |= {name: float(value) for name, value in scores.items()}
        if isinstance(posterior, Analyses):
            out |= posterior.scores()
        return out

    def draw(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> Figures:
        figures: Figures = {}
        if isinstance(posterior, Forecasts):
            return figures
        marginals = _select_named_states(posterior, len(self.state_names))
        if marginals is not None:
            figures |= draw_each([*self.figures, effective_size], self, marginals)
            if isinstance(marginals, Analyses):
                figures |= attempt(ANALYSIS, marginals.figures)
        return figures

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the manifest."""
        facts = {
            "data": self.name,
            "time points": f"{self.observations.shape[1]:,}",
            "states": f"{len(self.state_names)}",
            "observed": f"{self.observations.shape[2]}",
            "replicates": f"{self.replicates}",
        }
        facts |= self.about
        if self.regressors is not None:
            facts["regressors"] = f"{self.regressors.shape[1]}"
            facts |= self._missing_regressors()
        if self.inputs is not None:
            facts["inputs"] = ", ".join(self.input_names) or f"{self.inputs.shape[1]}"
        if self.states is None:
            facts.setdefault("truth", "not known")
        if self.clean is not None:
            facts["corrupted"] = (
                f"{100 * float(self.is_corrupted.double().mean()):.1f} % of observations"
            )
        if missing := int(self.missing.sum()):
            facts["missing"] = f"{missing:,} of {self.missing.numel():,} observations"
        return facts

    def _missing_regressors(self) -> dict[str, str]:
        """Number of times left out by a model that regresses on all of x, and the x responsible."""
        assert self.regressors is not None
        gone = self.regressors.isnan() & ~self.missing.all(0).unsqueeze(1)  # [T, p]
        if not gone.any():
            return {}
        counts = [
            f"{name} at {n:,}"
            for name, n in zip(self.regressor_names, gone.sum(0).tolist(), strict=False)
            if n
        ]
        times = int(gone.any(1).sum())
        return {
            "left out": f"{times:,} of {len(gone):,} times by models that regress on missing values: {', '.join(counts)}"
        }
