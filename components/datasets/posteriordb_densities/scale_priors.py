"""Priors of a scale σ > 0 as functions of log σ, up to a constant; densities of σ, without a
Jacobian.

Functions of log σ are also defined for scales beyond the floating-point range."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import softplus

ScalePrior = Callable[[Tensor], Tensor]  # log σ -> log p(σ), elementwise


def flat(log_scale: Tensor) -> Tensor:
    """p(σ) ∝ 1."""
    return 0 * log_scale


def half_normal(width: float) -> ScalePrior:
    """p(σ) ∝ exp(−σ²/2w²)."""
    return lambda log_scale: -0.5 * (2 * (log_scale - math.log(width))).exp()


def half_cauchy(width: float) -> ScalePrior:
    """p(σ) ∝ 1/(1 + σ²/w²)."""
    return lambda log_scale: -softplus(2 * (log_scale - math.log(width)))
