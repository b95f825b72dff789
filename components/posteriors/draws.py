"""Results of a sampler: draws [chain, draw, dim]."""

from __future__ import annotations

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
from components.contracts.checks import Check
from components.contracts.predictive import Predictive, ReversedPredictive
from components.contracts.problems import Rows
from components.contracts.roles import FinishedRun
from components.contracts.sequences import Series
from components.maths.spacing import evenly_spaced, sample_rows
from components.posteriors.mixing import draws_checks, inner_filter_checks

FORECASTS = 500  # maximum draws in mixtures of forecasts or clusters
DRAWS_PER_BATCH = 500  # number of draws for which rows are evaluated together


@dataclass(frozen=True)
class Draws:
    """Draws of C chains after burn-in and thinning; N is 0 during burn-in.

    Samplers use unconstrained coordinates θ [P]; ``values`` are the P' named parameters (for
    example a scale instead of its logarithm).  ``stats`` holds the sampler's statistics of each
    draw, [C, N] each, under ArviZ's names: ``lp``, ``acceptance_rate``, ``diverging``, ``energy``,
    ``n_steps``, ``tree_depth``, ``step_size``; and ``filter_ess``, the smallest effective sample
    size of the filter that estimated the likelihood."""

    draws: Tensor  # [C, N, P]
    start: Tensor  # [C, P] initial states of the chains
    # of the P' parameters; empty if unnamed
    names: list[str] = field(default_factory=list)
    # model of the draws, which constrains θ and predicts
    model: LogJoint | Parameterised | Conjugate | None = None
    stats: dict[str, Tensor] = field(default_factory=dict)  # [C, N] each
    # [C, P] current positions of the chains, used for predictions until a draw is stored
    current: Tensor | None = None
    log_weights: Tensor | None = None  # [C, N], importance sampling only; unnormalised
    # R: if above 1, C is R times the chains of each replicate, ordered by replicate
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
        """Parameters represented by θ [K, P], [K, P']."""
        return theta if self.model is None else self.model.constrain(theta)

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Mixture of the predictions of K parameters θ [K, P] at x [B, D].

        Raises TypeError for draws of a density, which does not predict.
        """
        if not isinstance(self.model, ThetaPredictive | Conjugate):
            raise TypeError(
                f"{type(self.model).__name__} cannot predict: it has no predictive(theta, x)"
            )
        return self.model.predictive(theta, x)

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks that the chains have mixed or that the weights are even, and that filters inside
        the likelihood have not collapsed."""
        mixed = draws_checks(self, run.scores) if run.inference.mixes else []
        return [*inner_filter_checks(self), *mixed]

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
        """Write ``posterior.nc``, ArviZ's InferenceData of the first replicate, to a run's folder.
        Returns the written paths."""
        # imported here: xarray takes a second to import
        from components.posteriors.inference_data import write

        return write(self.select_replicate(0), folder)

    def some(self, n: int, generator: torch.Generator | None) -> Draws:
        """n of the draws as one chain: at random with replacement, or the first n without a
        generator."""
        samples = self.flat[sample_rows(len(self.flat), n, generator).to(self.draws.device)]
        return Draws(samples.unsqueeze(0), self.start, self.names, self.model)

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Posterior predictive at x [B, D]: the mixture over all draws, or over the chains' states
        before a draw is stored."""
        return self.predictive(self._equal_weight_draws(generator), x)

    def reverse(self, x: Tensor, generator: torch.Generator) -> ReversedPredictive:
        """Predictive, and a function from ∂/∂f [S, B, T, C] to ∂/∂x [B, D] without autograd graph;
        None if not available for the model."""
        if self.log_weights is not None or not isinstance(self.model, ReversesPredictive):
            # weighted draws are resampled at each call, which must happen only once
            return None
        return self.model.predictive_reversed(self._equal_weight_draws(generator), x)

    def in_format(self, dtype: torch.dtype) -> Draws | None:
        """Copy of the predicting parts in another floating-point format; None if not available for
        the model."""
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
        """All draws [S, P], or the chains' states before a draw is stored."""
        return self.flat if self.n_draws else (self.start if self.current is None else self.current)

    def _equal_weight_draws(self, generator: torch.Generator) -> Tensor:
        """Parameters with equal weights, because predictives are equally weighted mixtures: all
        draws, or the chains' states before a draw is stored."""
        theta = self._theta
        if self.log_weights is not None and self.n_draws:
            rows = torch.multinomial(
                self.weights, len(theta), replacement=True, generator=generator
            )
            theta = theta[rows]
        return theta

    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> Predictive:
        """Forecast after a series: the mixture over at most 500 draws, evenly spaced.

        Raises TypeError if their model does not forecast.
        """
        if not isinstance(self.model, ForecastsSeries):
            raise TypeError(
                f"{type(self.model).__name__} cannot forecast: it has no forecast(theta, series, "
                f"horizon)"
            )
        with torch.no_grad():
            return self.model.forecast(
                evenly_spaced(self._equal_weight_draws(generator), FORECASTS), series, horizon
            )

    def log_likelihood(self, series: Series) -> Tensor:
        """log p(y_1:T | θ) of at most 500 draws, evenly spaced [S], or of the chains' states before
        a draw is stored.

        Raises TypeError if their model has no likelihood."""
        if not isinstance(self.model, LogJoint):
            raise TypeError(f"{type(self.model).__name__} has no log_likelihood(theta, series)")
        with torch.no_grad():
            return self.model.log_likelihood(evenly_spaced(self._theta, FORECASTS), series).sum(1)

    def log_predictive(self, batch: Rows) -> Tensor:
        """log C⁻¹N⁻¹ Σ p(x_b | θ) over all draws [B], or over the chains' states before a draw is
        stored.

        Raises TypeError if their model has no likelihood."""
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
        """Mean of p(z_b = k | x_b) over at most 500 draws, evenly spaced [B, K]; None if the model
        has no clusters."""
        if not isinstance(self.model, Clustered):
            return None
        with torch.no_grad():
            return self.model.clusters(evenly_spaced(self._theta, FORECASTS), batch)
