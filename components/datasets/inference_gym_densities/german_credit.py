"""Regressions of the risk of 1,000 credits on 24 columns and a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from components.datasets.named_target import NamedTarget, Variable, joint_target
from components.maths.bijectors import POSITIVE

SHAPE = 0.5  # shape and rate of the Gamma priors of scales


def _read_rows(data: dict[str, Any], like: Tensor) -> tuple[Tensor, Tensor]:
    """Standardised columns and a constant [N, 25], and the labels' signs [N]."""
    rows = like.new_tensor(data["rows"])
    x = rows[:, :-1]
    x = (x - x.mean(0)) / x.std(0, correction=0)
    return torch.cat([x, torch.ones_like(x[:, :1])], 1), 2 * rows[:, -1] - 3  # labels 1 and 2


def _regress(link: Callable[[Tensor], Tensor], data: dict[str, Any], like: Tensor) -> NamedTarget:
    """w ~ N(0, I), P(y_i = ±1) = exp link(±x_iᵀw)."""
    x, sign = _read_rows(data, like)
    signed = x * sign.unsqueeze(1)

    def log_joint(w: Tensor) -> Tensor:
        return link(w @ signed.mT).sum(1) - 0.5 * w.square().sum(1)

    return joint_target((Variable("theta", x.shape[1], spread=0.5),), log_joint, like)


def logistic(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """P(y = 1 | x) = σ(xᵀw)."""
    return _regress(logsigmoid, data, like)


def probit(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """P(y = 1 | x) = Φ(xᵀw)."""
    return _regress(torch.special.log_ndtr, data, like)


def sparse(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """w = g · λ ∘ u with u ~ N(0, I), λ_j and g ~ Gamma(½, ½): the logistic regression with a
    sparse prior."""
    x, sign = _read_rows(data, like)
    signed = x * sign.unsqueeze(1)

    def log_gamma(scale: Tensor) -> Tensor:
        return ((SHAPE - 1) * scale.log() - SHAPE * scale).sum(1)

    def log_joint(g: Tensor, local: Tensor, u: Tensor) -> Tensor:
        log_likelihood = logsigmoid((g * local * u) @ signed.mT).sum(1)
        return log_likelihood + log_gamma(g) + log_gamma(local) - 0.5 * u.square().sum(1)

    n = x.shape[1]
    variables = (
        Variable("global_scale", bijector=POSITIVE, centre=-1.0, spread=0.5),
        Variable("local_scales", n, POSITIVE, centre=-0.5),
        Variable("unscaled_weights", n),
    )
    return joint_target(variables, log_joint, like)
