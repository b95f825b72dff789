"""Input of the analyses of a linear regression: design, labels, and source of repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import Conjugate
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference
from components.contracts.states import not_checkpointed
from components.maths.least_squares import LinearData, least_squares
from components.models.linear.design import design, select_labelled
from components.problems.supervised import Supervised

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class LinearState:
    """The model, and the training rows in its form."""

    model: Conjugate = not_checkpointed()
    data: LinearData = not_checkpointed()


class LinearAnalysis(Inference[Conjugate, Supervised, Batch, S], Generic[S]):
    """Base of the analyses of a linear regression, which use all rows."""

    requires = Requirements(kinds={"supervised"}, batch_kind="whole", capabilities={Conjugate})
    reads_truth = True


def read_linear_data(model: Conjugate, problem: Supervised) -> LinearData:
    """The training rows in the form of a linear model."""
    X, y = select_labelled(problem.train, model.intercept)
    known_noise = None if isinstance(model.noise, tuple) else float(model.noise)
    names = list(model.names)[: X.shape[1]]
    if problem.truth:
        zero = X.new_zeros(int(model.intercept))
        beta = torch.cat([zero, problem.truth["beta"]])
        noise = float(problem.truth["noise"])
        return LinearData(X, y, names, known_noise, beta, noise, True)
    fit = least_squares(X, y, known_noise)
    return LinearData(X, y, names, known_noise, fit.beta, float(fit.noise), False)


def plug_in(data: LinearData, model: Conjugate, beta: Tensor, x: Tensor) -> GaussianMixture:
    """N(xᵀβ, σ̂²) at x [B, D]: plug-in prediction, without the error of the estimate."""
    mean = (design(x, model.intercept) @ beta)[None, :, None]
    noise = torch.as_tensor(data.fit.noise, dtype=mean.dtype, device=mean.device)
    return GaussianMixture(mean, noise.expand_as(mean))
