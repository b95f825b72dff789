"""The optimisation path along which ``swa``, ``swag`` and ``iterate_ensemble`` collect points, and
networks at these points."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import BatchNormalised, Penalised
from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.contracts.traces import is_kept_step
from components.errors import NumericalError
from components.inference.point.descent import DescentKeys, descend, frozen
from components.maths.annealing import cosine_anneal
from components.maths.line_search.module_bound import assign, flatten
from components.maths.optimizers import Optimizer
from components.problems.supervised import Supervised

M = TypeVar("M")  # a network, or the log joint of one


class AveragedPath(DescentKeys):
    """Keys of an optimisation path with collected points.

    A point is collected every ``every`` steps after ``burn_in``, with steps of size
    ``collect_lr``.

        constant: lr_t = lr up to burn_in
        cosine:   lr_t = collect_lr + ½ (lr − collect_lr) (1 + cos(π t/burn_in))
                  up to burn_in

    Source: Izmailov et al. (2018), section 3.2; Loshchilov and Hutter (2017), eq. (5).
    """

    schedule: Literal["constant", "cosine"]
    collect_lr: PositiveFloat
    burn_in: NonNegativeInt
    every: PositiveInt

    def rate_at(self, t: int) -> float:
        """Learning rate of the step that follows the first t steps."""
        if t >= self.burn_in:
            return self.collect_lr
        return (
            self.lr
            if self.schedule == "constant"
            else cosine_anneal(self.lr, self.collect_lr, t, self.burn_in)
        )

    def is_collection_step(self, t: int) -> bool:
        """True if the point after t ≥ 1 steps is collected."""
        return is_kept_step(t, self.burn_in, self.every)


@dataclass(frozen=True, kw_only=True)
class AveragedState:
    """A network in training."""

    network: Any
    optimizer: Optimizer
    t: int = 0  # finished steps
    n: int = 0  # collected points


S = TypeVar("S", bound=AveragedState)


class AveragedDescent(Inference[M, Supervised, Batch, S], AveragedPath, Generic[M, S]):
    """Base of methods that collect points along a descent; subclasses define ``collect``."""

    requires = Requirements(kinds={"supervised"}, capabilities={Penalised})

    @abstractmethod
    def collect(self, state: S, theta: Tensor) -> S:
        """The state after collecting the network's current point θ [P]."""

    def descend(self, state: S, batch: Batch, rng: Rng) -> Info:
        """One step of the network."""
        return descend(state.network, state.optimizer, batch, rng.noise)

    def step(self, state: S, batch: Batch, rng: Rng) -> tuple[S, Info]:
        state.optimizer.settings["lr"] = self.rate_at(state.t)
        info = self.descend(state, batch, rng)
        state = replace(state, t=state.t + 1)
        if self.is_collection_step(state.t):
            state = replace(self.collect(state, weights(state.network)), n=state.n + 1)
        return state, info | {"collected": state.n}


def weights(network: Trainable) -> Tensor:
    """Parameters of a module as one row [P].

    Raises:
        NumericalError: a parameter is not finite."""
    theta = flatten(list(network.parameters()))
    if not bool(torch.isfinite(theta.sum())):
        raise NumericalError(
            "the weights became non-finite", "lower inference.lr or inference.collect_lr"
        )
    return theta


@torch.no_grad()
def copy_frozen(network: Penalised, theta: Tensor, shown: list[Tensor] | None = None) -> Penalised:
    """Return a frozen copy of a network with other parameters θ [P].

    Its batch normalisation statistics are recomputed at θ from the batches ``shown``,
    because no trained network has statistics for these parameters.
    """
    still = frozen(network)
    assign(list(still.parameters()), theta)
    if shown is not None and isinstance(still, BatchNormalised):
        still.gather(shown)
    return still


def training_input_batches(problem: Supervised, rows: int | None) -> list[Tensor]:
    """Inputs of the first training rows (all if None), as views in batches of the training batch
    size.  Rows that do not fill the last batch are dropped, as in training."""
    x = problem.train.x[:rows]
    size = min(problem.batch_size or len(x), len(x))
    return list(x[: len(x) // size * size].split(size))
