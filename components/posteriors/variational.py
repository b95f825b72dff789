"""Posteriors with fresh draws for every prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.capabilities import Elbo, Network
from components.contracts.capabilities.networks import CastableNetwork
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses
from components.contracts.predictive import Predictive
from components.posteriors.draws import Draws
from components.posteriors.redraws import DrawsByNumber


@dataclass(frozen=True)
class DropoutPosterior(DrawsByNumber):
    """Networks with dropout at prediction: each mask of hidden units is one posterior draw."""

    network: Network

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S stochastic passes at x [B, D]; differentiable in x."""
        return self.network.output_predictive(self.network(x, generator, self.n_predict))

    def in_format(self, dtype: torch.dtype) -> DropoutPosterior | None:
        """A copy in another floating-point format; None if not available for the network."""
        return (
            replace(self, network=self.network.in_format(dtype))
            if isinstance(self.network, CastableNetwork)
            else None
        )


@dataclass(frozen=True)
class VariationalPosterior(DrawsByNumber):
    """q(f) of a variational model; figures read ARD weights and inducing inputs from ``module``."""

    module: Elbo

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y*|x*) as a mixture over ``n_predict`` samples, x [B, D]."""
        return self.module.sample_predictive(x, self.n_predict, generator)


@dataclass(frozen=True)
class BoundedPosterior(VariationalPosterior, Analyses):
    """q(f) of a variational model with its bound on the training evidence as a score."""

    elbo: float  # nats

    def scores(self) -> NamedScores:
        """Minus the bound."""
        return {"nelbo": -self.elbo}


@dataclass(frozen=True, kw_only=True)
class GaussianPosterior(Draws, Analyses):
    """q(θ) = N(m, Σ) over unconstrained θ, with draws from it for predictions and scores."""

    q_mean: Tensor  # m [P]
    q_covariance: Tensor  # Σ [P, P]
    elbo: (
        float | None
        # estimate of a lower bound on the evidence of the training rows in nats; None if there are no
        # rows
    )

    def scores(self) -> NamedScores:
        """Minus the bound."""
        return {} if self.elbo is None else {"nelbo": -self.elbo}


@dataclass(frozen=True, kw_only=True)
class RefinedPosterior(Draws, Analyses):
    """Draws of a fitted guide, optionally refined by a sampler, for predictions and scores."""

    objective: float  # estimate from these draws, in nats
    # True if it is a lower bound on the evidence (for a density, on its log normaliser)
    bounds: bool

    def scores(self) -> NamedScores:
        """Minus the bound, or the objective if it is not a bound."""
        return {"nelbo": -self.objective} if self.bounds else {"objective": self.objective}
