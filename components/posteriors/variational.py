"""Posteriors that draw anew at every prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.capabilities import Elbo, Network
from components.contracts.capabilities.networks import CastableNetwork
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses
from components.contracts.predictive import Predictive
from components.posteriors.draws import Draws, DrawsByNumber


@dataclass(frozen=True)
class DropoutPosterior(DrawsByNumber):
    """The networks that dropout leaves: each mask of hidden units is one posterior draw."""

    network: Network

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S stochastic passes at x [B, D]; differentiable in x."""
        return self.network.output_predictive(self.network(x, generator, self.n_predict))

    def in_format(self, dtype: torch.dtype) -> DropoutPosterior | None:
        """A copy in another floating-point format; None: the network has none."""
        return (
            replace(self, network=self.network.in_format(dtype))
            if isinstance(self.network, CastableNetwork)
            else None
        )


@dataclass(frozen=True)
class VariationalPosterior(DrawsByNumber):
    """q(f) of a variational model; ``module`` is what figures read ARD weights and inducing inputs
    from."""

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
    """q(θ) = N(m, Σ) over unconstrained θ, and draws of it, which predict and are scored as any
    others."""

    q_mean: Tensor  # m [P]
    q_covariance: Tensor  # Σ [P, P]
    elbo: (
        float | None
    )  # by these draws, a lower bound on the evidence of the training rows in nats; None: there are no rows

    def scores(self) -> NamedScores:
        """Minus the bound."""
        return {} if self.elbo is None else {"nelbo": -self.elbo}


@dataclass(frozen=True, kw_only=True)
class RefinedPosterior(Draws, Analyses):
    """Draws of a fitted guide, or of one that a sampler has refined, which predict and are scored
    as any others."""

    objective: float  # by these draws, in nats
    # whether it is a lower bound on the evidence (of a density: on its log normaliser)
    bounds: bool

    def scores(self) -> NamedScores:
        """Minus the bound, or the objective if it is not a bound."""
        return {"nelbo": -self.objective} if self.bounds else {"objective": self.objective}
