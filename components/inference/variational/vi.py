"""Variational inference for models with their own guide, with any estimator of the gradient of
their bound."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import PositiveInt

from components.contracts.capabilities import Elbo, LogRatio
from components.contracts.posteriors import Analyses, BoundsLikelihood, Predicts, Redraws
from components.contracts.problems import Batch, Kind, RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.point.descent import DescentKeys
from components.inference.variational.ascent import TrainingState, ascend
from components.posteriors.latent import LatentPosterior
from components.posteriors.variational import BoundedPosterior
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register

CHUNK = 1000  # rows processed together in estimates of the full bound

RowTrainingState = TrainingState[LogRatio[RowBatch]]


@dataclass
class LabelTrainingState(TrainingState[Elbo]):
    """A model of labels in training, and the data and seeds for the bound on all rows."""

    train: Batch = not_checkpointed()
    # seed for each part: fixed, so that the score changes only with the model
    noise: list[Any] = not_checkpointed()


def parts(batch: Batch) -> Iterator[Batch]:
    """All rows, in chunks."""
    for start in range(0, batch.n_rows, CHUNK):
        yield batch.part(slice(start, start + CHUNK), 1.0)


@register("inference", "vi")
class VI(
    Inference[
        LogRatio[RowBatch] | Elbo,
        Unlabelled | Supervised,
        RowBatch,
        RowTrainingState | LabelTrainingState,
    ],
    DescentKeys,
):
    """Variational inference: ascent of a lower bound on log p(x), or on log p(y | x), by any
    gradient (Adam or SGD).

        φ ← φ + lr · Adam(ĝ / N),   E[ĝ] = ∇_φ Σ_n E_q(z|x_n)[log p(x_n, z) − log q(z|x_n)]
        for labels                  E[ĝ] = ∇_φ {Σ_n E_q(f_n)[log p(y_n | f_n)] − KL[q ‖ p]}

    ``gradient`` estimates ĝ from a minibatch; φ are the parameters of the generative model and of
    its guide q.  Dividing by the number of rows N does not change the path of Adam and gives ``lr``
    of sgd its usual meaning.  Labels are predicted with ``n_predict`` samples, and minus the bound
    on all training rows (``nelbo``) is estimated with ``bound_samples``. Info: the terms of the
    bound for the whole data set in nats (``elbo``), and the norm of ĝ / N.

    Source: Kingma and Welling (2014), Algorithm 1; Rezende, Mohamed and Wierstra (2014), Algorithm
    1; for labels Salimbeni and Deisenroth (2017), Boustati (2021), section 4.6.4."""

    requires = Requirements(
        kinds={"unlabelled", "supervised"},
        capabilities=frozenset(),
        capabilities_by_kind={
            "unlabelled": {LogRatio},  # scores held-out rows
            "supervised": {Elbo},  # and predicts labels
        },
    )
    provides_by_kind = {
        "unlabelled": {BoundsLikelihood},
        "supervised": {Predicts, Redraws, Analyses},
    }
    # keys inherited by the gradient estimator
    inherited_keys = {"n_samples"}

    gradient: Gradient
    n_samples: PositiveInt
    n_predict: PositiveInt
    bound_samples: PositiveInt

    def required_capabilities(self, kind: Kind, offered: Set[type] = frozenset()) -> Set[type]:
        return super().required_capabilities(kind, offered) | self.gradient.requires.capabilities

    def init(
        self, model: LogRatio[RowBatch] | Elbo, problem: Unlabelled | Supervised, rng: Rng
    ) -> RowTrainingState | LabelTrainingState:
        optimizer = self.build_optimizer(model.parameters())
        learnt = self.gradient.init(model, rng)
        if isinstance(problem, Supervised):
            assert isinstance(model, Elbo)
            every = enumerate(parts(problem.train))
            noise = [
                model.draw_noise(part, self.bound_samples, rng.at("noise", i)) for i, part in every
            ]
            return LabelTrainingState(model, optimizer, learnt, problem.train, noise)
        assert isinstance(model, LogRatio)
        return TrainingState(model, optimizer, learnt)

    def step(
        self, state: RowTrainingState | LabelTrainingState, batch: RowBatch, rng: Rng
    ) -> tuple[RowTrainingState | LabelTrainingState, Info]:
        return ascend(state, self.gradient, batch, rng)

    def posterior(
        self, state: RowTrainingState | LabelTrainingState
    ) -> LatentPosterior | BoundedPosterior:
        if isinstance(state, LabelTrainingState):
            return BoundedPosterior(state.module, self.elbo_value(state), n_predict=self.n_predict)
        return LatentPosterior(state.module)

    @staticmethod
    @torch.no_grad()
    def elbo_value(state: LabelTrainingState) -> float:
        """ELBO of all training rows, in nats."""
        terms = [
            state.module.elbo(part, noise)
            for part, noise in zip(parts(state.train), state.noise, strict=True)
        ]
        return float(torch.stack([term["log_likelihood"] for term in terms]).sum() - terms[0]["kl"])
