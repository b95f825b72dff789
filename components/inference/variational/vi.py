"""Variational inference of models with a guide of their own, by any estimator of the gradient of their bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt

from components.contracts.capabilities import LogRatio
from components.contracts.problems import Kind, RowBatch
from components.contracts.roles import Gradient, Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import Descent, optimizer_of
from components.maths.optimizers import Optimizer
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass
class Fitting:
    """A model in training, its optimizer, and what the estimator of its gradient has learnt."""

    module: LogRatio[RowBatch]
    optimizer: Optimizer
    gradient: Any  # the state of the estimator


@register("inference", "vi")
class VI(Inference[LogRatio[RowBatch], Unlabelled, RowBatch, Fitting]):
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

    def init(self, model: LogRatio[RowBatch], problem: Unlabelled, rng: Rng) -> Fitting:
        optimizer = optimizer_of(model.parameters(), self.optimizer, self.lr, self.momentum)
        return Fitting(model, optimizer, self.gradient.init(model, rng))

    def step(self, state: Fitting, batch: RowBatch, rng: Rng) -> tuple[Fitting, Info]:
        gradients, terms, estimator = self.gradient.estimate(state.module, batch, rng, state.gradient)
        n = batch.scale * batch.n_rows
        for parameter, gradient in zip(state.module.parameters(), gradients, strict=True):
            parameter.grad = None if gradient is None else gradient / -n  # optimizers descend
        norm = torch.nn.utils.get_total_norm([g for g in gradients if g is not None]) / n
        state.optimizer.step()
        return Fitting(state.module, state.optimizer, estimator), terms | {"grad_norm": norm}

    def posterior(self, state: Fitting) -> LatentPosterior:
        return LatentPosterior(state.module)
