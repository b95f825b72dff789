"""Ascent step shared by the variational methods.

The gradient is an estimate of the gradient of the bound, or the derivative of the bound itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import RowBatch, Rows
from components.contracts.roles import Gradient, Info
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.maths.optimizers import Optimizer

M = TypeVar("M", bound=Trainable)


@dataclass
class TrainingState(Generic[M]):
    """A module in training, its optimizer, and the state of its gradient estimator."""

    module: M
    optimizer: Optimizer
    gradient: Any  # state of the estimator


F = TypeVar("F", bound=TrainingState[Any])


def ascend(state: F, estimator: Gradient, batch: RowBatch, rng: Rng) -> tuple[F, Info]:
    """Update φ ← φ + lr · optimizer(ĝ / N) with the estimate ĝ.  Returns the next state, the terms
    of the bound for the whole data set in nats, and the norm of ĝ / N."""
    gradients, terms, learnt = estimator.estimate(state.module, batch, rng, state.gradient)
    norm = climb(state.optimizer.parameters, gradients, batch.scale * batch.n_rows, state.optimizer)
    return replace(state, gradient=learnt), terms | {"grad_norm": norm}


def ascend_parameters(
    state: F, estimator: Gradient, batch: RowBatch | None, rng: Rng
) -> tuple[F, Info]:
    """``ascend`` for a q(θ); a density, which has no rows, counts as one row.

    Raises NumericalError if q becomes non-finite."""
    rows: RowBatch = (
        Rows(state.optimizer.parameters[0].new_zeros(1, 0), 1.0) if batch is None else batch
    )
    state, info = ascend(state, estimator, rows, rng)
    check_norm(info["grad_norm"])
    return state, info


def check_norm(norm: Tensor) -> None:
    """Raise NumericalError if the norm of a gradient is not finite."""
    if not torch.isfinite(norm):
        raise NumericalError(
            "q(θ) became non-finite", "lower inference.lr, or raise inference.n_samples"
        )


def climb(
    parameters: Iterable[Tensor], gradients: Iterable[Tensor | None], n: float, optimizer: Optimizer
) -> Tensor:
    """Update φ ← φ + lr · optimizer(ĝ / N) for parameters and their gradients (None for no
    dependence).  Returns ‖ĝ / N‖ []."""
    pairs = list(zip(parameters, gradients, strict=True))
    # optimizers descend; one pass for all
    scaled = torch._foreach_div([g for _, g in pairs if g is not None], -n)
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(scaled)))
    upwards = iter(scaled)
    for parameter, gradient in pairs:
        parameter.grad = None if gradient is None else next(upwards)
    optimizer.step()
    return norm


def ascend_value(
    module: Trainable, value: Tensor, batch: RowBatch | None, optimizer: Optimizer
) -> Tensor:
    """Update φ ← φ + lr · optimizer(∇value / N), N = 1 for a density.  Returns ‖∇value / N‖ [].

    Raises NumericalError if q becomes non-finite."""
    parameters = list(module.parameters())
    # parameters of the model to which q is fitted are excluded
    gradients = torch.autograd.grad(value, parameters, allow_unused=True)
    norm = climb(parameters, gradients, rows_of(batch), optimizer)
    check_norm(norm)
    return norm


def rows_of(batch: RowBatch | None) -> float:
    """Number N of rows in the whole data set of a minibatch; 1 for a density."""
    return 1.0 if batch is None else batch.scale * batch.n_rows


def warmup_weight(t: int, steps: int) -> float:
    """Weight that rises from 0 to 1 over the given steps: min(1, t/steps), 1 for no steps."""
    return min(1.0, t / steps) if steps else 1.0


def ascend_term(
    optimizer: Optimizer, terms: Mapping[str, Tensor], name: str, batch: RowBatch
) -> Info:
    """One optimizer step that increases a named term [], divided by the number of rows.  Returns
    all terms."""
    optimizer.descend(-terms[name] / (batch.scale * batch.n_rows))
    return {key: value.detach() for key, value in terms.items()}
