"""Value and gradient of a log joint density at K chains, on the whole data or a minibatch."""

from __future__ import annotations

from functools import cache
from typing import TypeGuard

import torch
from torch import Tensor

from components.contracts.capabilities import ClosedFormScore, LogJoint
from components.contracts.capabilities.densities import DataBatch
from components.contracts.costs.counts import counting_gradients
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError


@cache
def _has_score(kind: type) -> bool:
    # a protocol check reads every member on each call, which takes tens of microseconds
    return issubclass(kind, ClosedFormScore)


def has_score(model: LogJoint) -> TypeGuard[ClosedFormScore]:
    """True if the gradient has a closed form, which depends on the class of the model."""
    return _has_score(type(model))


def log_joint(model: LogJoint, theta: Tensor, batch: DataBatch | None) -> Tensor:
    """Unbiased estimate log p(θ) + N/B Σ_b log p(y_b | θ) of the log joint of all N rows.

    θ [K, P] -> [K].  ``batch`` None represents no data (a density problem).

    Source: Welling & Teh (2011), eq. (3).
    """
    log_prior = model.log_prior(theta)
    if batch is None:
        return log_prior
    return log_prior + batch.scale * model.log_likelihood(theta, batch).sum(1)


def finite_log_joint(model: LogJoint, theta: Tensor, batch: DataBatch | None) -> Tensor:
    """``log_joint`` [n] without gradients, −∞ where it is not finite."""
    value = log_joint(model, theta, batch).detach()
    return value.masked_fill(~torch.isfinite(value), -torch.inf)


def value_and_gradient(
    model: LogJoint, theta: Tensor, batch: DataBatch | None
) -> tuple[Tensor, Tensor]:
    """Log joint [K] and its gradient [K, P]; chains do not interact, so one backward pass serves
    all K.

    A model with ``ClosedFormScore`` needs no backward pass, which saves at least half the work.
    Raises ConfigMismatchError if the log joint cannot be differentiated."""
    if isinstance(batch, Batch) and has_score(model):
        with torch.no_grad():
            return model.score(theta.detach(), batch, True)
    theta = theta.detach().requires_grad_()
    with counting_gradients(), torch.enable_grad():
        value = log_joint(model, theta, batch)
        if not value.requires_grad:
            raise ConfigMismatchError(
                "inference requires the gradient of the log joint, which this model does not "
                "provide; use inference=random_walk_mh"
            )
        (gradient,) = torch.autograd.grad(value.sum(), theta)
    return value.detach(), gradient


def log_joint_gradient(model: LogJoint, theta: Tensor, batch: DataBatch | None) -> Tensor:
    """Only the gradient [K, P], so that a closed form need not compute the value."""
    if not isinstance(batch, Batch) or not has_score(model):
        return value_and_gradient(model, theta, batch)[1]
    with torch.no_grad():
        return model.score(theta.detach(), batch, False)[1]
