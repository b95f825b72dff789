"""Results of a sampler: draws [chain, draw, dim]."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from components.contracts.capabilities import (
    Clustered,
    Conjugate,
    ForecastsSeries,
    LogJoint,
    Parameterised,
    ThetaPredictive,
)
from components.contracts.capabilities.networks import CastableNetwork, ReversesPredictive
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Predictive, Reverse
from components.contracts.problems import Rows
from components.contracts.sequences import Series

FORECASTS = 500  # draws that mix their forecasts, or clusters
DRAWS_PER_BATCH = 500  # draws for which rows are evaluated together


@dataclass(frozen=True)
class Draws:
    """Draws of C chains after burn-in and thinning; N may still be 0 while the chains burn in.

    Samplers move in unconstrained coordinates θ [P]; ``values`` are the parameters that users name,
    P' of them (a scale is its exponential, not its logarithm).  ``stats`` holds what a sampler says
    of each draw, [C, N] each, under ArviZ's names: ``lp``, ``acceptance_rate``, ``diverging``,
    ``energy``, ``n_steps``, ``tree_depth``, ``step_size``; and ``filter_ess``, the smallest
    effective sample size of the filter that estimated the likelihood."""

    draws: Tensor  # [C, N, P]
    start: Tensor  # [C, P] where the chains began
    # of the P' parameters; empty where they have none
    names: list[str] = field(default_factory=list)
    model: LogJoint | Parameterised | Conjugate | None = (
        None  # model of the draws: it constrains θ and predicts
    )
    stats: dict[str, Tensor] = field(default_factory=dict)  # [C, N] each
    # [C, P] current positions of the chains; they predict while no draw is kept yet
    current: Tensor | None = None
    log_weights: Tensor | None = None  # [C, N], importance sampling only; unnormalised
    # R: if more than one, C above is R times the chains of each, with the chains of the first
    # replicate first
    replicates: int = 1

    def select_replicate(self, r: int) -> Draws:
        """Draws of only one replicate, r = 0 … R − 1."""
        if self.replicates == 1:
            return self

        def rows(value: Tensor) -> Tensor:
            return value.unflatten(0, (self.replicates, -1))[r]

        return replace(
            self,
            draws=rows(self.draws),
            start=rows(self.start),
            stats={name: rows(value) for name, value in self.stats.items()},
            current=None if self.current is None else rows(self.current),
            log_weights=None if self.log_weights is None else rows(self.log_weights),
            replicates=1,
        )

    @property
    def n_chains(self) -> int:
        return self.draws.shape[0]

    @property
    def n_draws(self) -> int:
        return self.draws.shape[1]

    @property
    def flat(self) -> Tensor:
        """All θ of all chains, [C·N, P]."""
        return self.draws.flatten(0, 1)

    @cached_property
    def values(self) -> Tensor:
        """Draws of the parameters themselves, [C, N, P']."""
        return self.constrain(self.flat).unflatten(0, self.draws.shape[:2])

    def constrain(self, theta: Tensor) -> Tensor:
        """Parameters that θ [K, P] represents, [K, P']."""
        return theta if self.model is None else self.model.constrain(theta)

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Mixture of the predictions of K parameters θ [K, P] at x [B, D].

        Raises TypeError when they were drawn for a density, which predicts nothing.
        """
        if not isinstance(self.model, ThetaPredictive | Conjugate):
            raise TypeError(
                f"{type(self.model).__name__} predicts nothing: it has no predictive(theta, x)"
            )
        return self.model.predictive(theta, x)

    @property
    def weights(self) -> Tensor:
        """Self-normalised weight of each draw, [C·N]; 1/(C·N) unless they come from importance
        sampling."""
        if self.log_weights is None:
            return self.draws.new_full((len(self.flat),), 1 / max(len(self.flat), 1))
        return self.log_weights.flatten().softmax(0)

    @property
    def mean(self) -> Tensor:
        """Estimate of the parameters' means, [P']."""
        return self.expectation(self.values.flatten(0, 1))

    @property
    def second_moment(self) -> Tensor:
        """Estimate of the means of the parameters' squares, [P']."""
        return self.expectation(self.values.flatten(0, 1).square())

    def expectation(self, f: Tensor) -> Tensor:
        """Estimate of E[f] from the values f [C·N, …] at all draws."""
        return f.mean(0) if self.log_weights is None else torch.tensordot(self.weights, f, 1)

    def artefacts(self, folder: Path) -> list[Path]:
        """Writes ``posterior.nc``, ArviZ's InferenceData, of the first replicate into a run's
        folder: the paths written."""
        # imported here: xarray takes a second to import
        from components.posteriors.inference_data import write

        return write(self.select_replicate(0), folder)

    def some(self, n: int, generator: torch.Generator | None) -> Draws:
        """n of the draws as a chain of their own: at random with replacement, or the first n
        without a generator."""
        if generator is None:
            rows = torch.arange(min(n, len(self.flat)))
        else:
            rows = torch.randint(len(self.flat), (n,), generator=generator, device=generator.device)
        samples = self.flat[rows.to(self.draws.device)]
        return Draws(samples.unsqueeze(0), self.start, self.names, self.model)

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Posterior predictive at x [B, D]: the mixture over all draws; over the chains' states
        before one is kept."""
        return self.predictive(self._equal_weight_draws(generator), x)

    def reverse(self, x: Tensor, generator: torch.Generator) -> tuple[Predictive, Reverse] | None:
        """The same, and what takes ∂/∂f [S, B, T, C] to ∂/∂x [B, D] without a graph; None: the
        model has no such form."""
        if self.log_weights is not None or not isinstance(self.model, ReversesPredictive):
            # draws with weights are redrawn at each call, and that must happen once
            return None
        return self.model.predictive_reversed(self._equal_weight_draws(generator), x)

    def in_format(self, dtype: torch.dtype) -> Draws | None:
        """Copy of the predicting parts in another floating-point format; None: the model has
        none."""
        if not isinstance(self.model, CastableNetwork):
            return None
        current = None if self.current is None else self.current.to(dtype)
        weights = self.log_weights
        model = self.model.in_format(dtype)
        return Draws(
            draws=self.draws.to(dtype),
            start=self.start.to(dtype),
            names=self.names,
            model=model,
            stats={},
            current=current,
            log_weights=weights,
            replicates=self.replicates,
        )

    @property
    def _theta(self) -> Tensor:
        """All draws [S, P]; where the chains are before one is kept."""
        return self.flat if self.n_draws else (self.start if self.current is None else self.current)

    def _equal_weight_draws(self, generator: torch.Generator) -> Tensor:
        """Parameters of equal weight, for predictives are mixtures of such: all draws; where the
        chains are before one is kept."""
        theta = self._theta
        if self.log_weights is not None and self.n_draws:
            rows = torch.multinomial(
                self.weights, len(theta), replacement=True, generator=generator
            )
            theta = theta[rows]
        return theta

    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> Predictive:
        """Forecast after a series: the mixture over at most 500 draws, evenly spaced.

        Raises TypeError when their model forecasts nothing.
        """
        if not isinstance(self.model, ForecastsSeries):
            raise TypeError(
                f"{type(self.model).__name__} forecasts nothing: it has no forecast(theta, series, horizon)"
            )
        with torch.no_grad():
            return self.model.forecast(
                evenly_spaced(self._equal_weight_draws(generator), FORECASTS), series, horizon
            )

    def log_likelihood(self, series: Series) -> Tensor:
        """log p(y_1:T | θ) of at most 500 draws, evenly spaced [S]; of where the chains are before
        one is kept.

        Raises TypeError when their model has no likelihood."""
        if not isinstance(self.model, LogJoint):
            raise TypeError(f"{type(self.model).__name__} has no log_likelihood(theta, series)")
        with torch.no_grad():
            return self.model.log_likelihood(evenly_spaced(self._theta, FORECASTS), series).sum(1)

    def log_predictive(self, batch: Rows) -> Tensor:
        """log C⁻¹N⁻¹ Σ p(x_b | θ) over all draws [B]; over where the chains are before one is kept.

        Raises TypeError when their model has no likelihood."""
        if not isinstance(self.model, LogJoint):
            raise TypeError(f"{type(self.model).__name__} has no log_likelihood(theta, rows)")
        with torch.no_grad():
            # [C·N, B]
            each = torch.cat(
                [
                    self.model.log_likelihood(part, batch)
                    for part in self._theta.split(DRAWS_PER_BATCH)
                ]
            )
        log_weights = (
            each.new_zeros(len(each)) if self.log_weights is None else self.log_weights.flatten()
        )
        return (each + log_weights.log_softmax(0)[:, None]).logsumexp(0)

    def clusters(self, batch: Rows) -> Tensor | None:
        """p(z_b = k | x_b), on average over at most 500 draws, evenly spaced [B, K]; None: the
        model has no clusters."""
        if not isinstance(self.model, Clustered):
            return None
        with torch.no_grad():
            return self.model.clusters(evenly_spaced(self._theta, FORECASTS), batch)


def evenly_spaced(theta: Tensor, most: int) -> Tensor:
    """So many of the rows, evenly spaced, or all."""
    if len(theta) <= most:
        return theta
    return theta[torch.linspace(0, len(theta) - 1, most, device=theta.device).round().long()]


@dataclass(frozen=True)
class Held:
    """Posterior that would draw again at each prediction, held at the same draws.

    The prediction of a row then depends only on x.
    """

    posterior: Predicts

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Predictive at x [B, D]; the generator is not used."""
        return self.posterior.predict(x, torch.Generator(x.device).manual_seed(0))


@dataclass(frozen=True, kw_only=True)
class DrawsByNumber:
    """Posterior predictive by ``n_predict`` draws, new ones at each prediction."""

    n_predict: int

    @abstractmethod
    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y|x) at x [B, D], a mixture of so many."""

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n draws behind each prediction: new ones, or always the same without a generator."""
        return hold(replace(self, n_predict=n), generator)


def hold(posterior: Predicts, generator: torch.Generator | None) -> Predicts:
    """The posterior itself, which draws anew at each prediction; one that does not, without a
    generator."""
    return Held(posterior) if generator is None else posterior
