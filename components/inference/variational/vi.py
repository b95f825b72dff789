"""Variational inference of models with a guide of their own, by any estimator of the gradient of their bound."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from components.contracts.capabilities import LogRatio
from components.contracts.problems import Kind, RowBatch
from components.contracts.roles import Gradient, Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import Descent, optimizer_of
from components.inference.variational.ascent import Fitting, ascend
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from components.registry import register

FittingOfRows = Fitting[LogRatio[RowBatch]]


@register("inference", "vi")
class VI(Inference[LogRatio[RowBatch], Unlabelled, RowBatch, FittingOfRows]):
    """Variational inference: ascent of a lower bound on log p(x), model and guide at once (Adam or gradient ascent).

        φ ← φ + lr · Adam(ĝ / N),   E[ĝ] = ∇_φ Σ_n E_q(z|x_n)[log p(x_n, z) − log q(z|x_n)]

    ĝ is what ``gradient`` estimates from a minibatch; φ are the parameters of the generative model and of its guide q.
    Dividing by the number of rows N leaves Adam's path as it is and gives ``lr`` of sgd its customary meaning.
    Info: the terms of the bound for the whole data set in nats (``elbo``), and the norm of ĝ / N.

    Source: Kingma and Welling (2014), Algorithm 1; Rezende, Mohamed and Wierstra (2014), Algorithm 1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"unlabelled"})
    needs: ClassVar[frozenset[str]] = frozenset({"log_ratio"})  # what held-out rows are scored by
    gives: ClassVar[frozenset[str]] = frozenset({"bounds_likelihood", "holds_module"})
    shares: ClassVar[frozenset[str]] = frozenset({"n_samples"})  # keys that the gradient takes over from here

    gradient: Gradient
    n_samples: PositiveInt
    optimizer: Descent
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]

    def needed(self, kind: Kind) -> frozenset[str]:
        return super().needed(kind) | self.gradient.needs

    def init(self, model: LogRatio[RowBatch], problem: Unlabelled, rng: Rng) -> FittingOfRows:
        optimizer = optimizer_of(model.parameters(), self.optimizer, self.lr, self.momentum)
        return Fitting(model, optimizer, self.gradient.init(model, rng))

    def step(self, state: FittingOfRows, batch: RowBatch, rng: Rng) -> tuple[FittingOfRows, Info]:
        return ascend(state, self.gradient, batch, rng)

    def posterior(self, state: FittingOfRows) -> LatentPosterior:
        return LatentPosterior(state.module)
