"""Descent step on minus the log joint of a network.

It is shared by ``map``, ``mc_dropout`` and ``mc_dropout_alpha``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
from pydantic import BaseModel, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import Penalised
from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import Batch
from components.contracts.roles import Info, ZeroToBelowOne
from components.maths.optimizers import SGD, Adadelta, AdaGrad, Adam, Optimizer

Descent = Literal["adam", "sgd", "adagrad", "adadelta"]
# optimizers without options except the rate
ADAPTIVE: dict[str, type[Adam | AdaGrad | Adadelta]] = {
    "adam": Adam,
    "adagrad": AdaGrad,
    "adadelta": Adadelta,
}
T = TypeVar("T", bound=Trainable)


@dataclass(frozen=True)
class DescentState:
    """A network in training, and its optimizer."""

    network: Penalised
    optimizer: Optimizer
    t: int = 0  # finished steps


class DescentKeys(BaseModel):
    """Keys of the optimizer of methods that train by gradients."""

    optimizer: Descent
    lr: PositiveFloat
    momentum: ZeroToBelowOne

    def build_optimizer(self, parameters: Iterable[Tensor]) -> Optimizer:
        """The optimizer with this name; only sgd has the momentum of the key."""
        if self.optimizer == "sgd":
            return SGD(parameters, self.lr, self.momentum)
        return ADAPTIVE[self.optimizer](parameters, self.lr)


def descend(
    network: Penalised, optimizer: Optimizer, batch: Batch, generator: torch.Generator | None
) -> Info:
    """One step on loss = −(N/B Σ_b log p(y_b|x_b) + log p(θ)) / N.

    Dividing by the number of rows N does not change the path of Adam and gives ``lr`` of SGD its
    usual meaning."""
    return lower(network, optimizer, batch, network.log_prob(network(batch.x, generator), batch))


def lower(network: Penalised, optimizer: Optimizer, batch: Batch, fit: Tensor) -> Info:
    """One step of ``descend`` with ``fit`` [B] in place of log p(y_b|x_b)."""
    value, log_likelihood, penalty = loss(network, batch, fit)
    optimizer.descend(value)
    return {
        "loss": value.detach(),
        "log_likelihood": log_likelihood.detach(),
        "penalty": penalty.detach(),
    }


def loss(network: Penalised, batch: Batch, fit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """−(N/B Σ_b fit_b + log p(θ)) / N, N/B Σ_b fit_b and −log p(θ), [] each."""
    log_likelihood = batch.scale * fit.sum()
    penalty = network.penalty()
    value = (penalty - log_likelihood) / (batch.scale * len(batch.x))
    return value, log_likelihood, penalty


def frozen(network: T) -> T:
    """Copy of a network in prediction mode, without parameter gradients, for attacks.

    Further training does not change it.
    """
    still = copy.deepcopy(network)
    still.train(False)
    for parameter in still.parameters():
        parameter.requires_grad_(False)
    return still
