"""A log density computed by another package as a torch function, with that package's gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.errors import ConfigMismatchError

Rows = np.ndarray[tuple[int, ...], np.dtype[np.float64]]  # float64


@dataclass(frozen=True)
class ForeignFunctions:
    """A model written for another package, over unconstrained θ [K, P], in float64.

    A point outside the support has the value −∞ (or NaN); its gradient is arbitrary.
    """

    names: list[str]  # of the P' parameters
    dim: int  # P
    value: Callable[[Rows], Rows]  # [K, P] -> log density with log-Jacobian [K]
    value_and_gradient: Callable[[Rows], tuple[Rows, Rows]]  # [K, P] -> [K], [K, P]
    constrain: Callable[[Rows], Rows]  # [K, P] -> [K, P']


class ForeignLogDensity:
    """log π(θ) [K] for θ [K, P], differentiable once.

    The value and the gradient come from one call of the other package, in float64 on the CPU;
    the result has the dtype and device of θ.

    Raises:
        ConfigMismatchError: a second derivative is requested.
    """

    def __init__(self, functions: ForeignFunctions, where: str):
        self._functions = functions
        self._where = where

    def __call__(self, theta: Tensor) -> Tensor:
        if torch.is_grad_enabled() and theta.requires_grad:
            value: Tensor = _Value.apply(theta, self._functions, self._where)
            return value
        return to_tensor(self._functions.value(to_rows(theta)), theta)


class _Value(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, functions: ForeignFunctions, where: str) -> Tensor:
        value, gradient = functions.value_and_gradient(to_rows(theta))
        ctx.save_for_backward(theta, to_tensor(gradient, theta))
        ctx.where = where
        return to_tensor(value, theta)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        theta, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient may be differentiated again
            gradient = _Gradient.apply(theta, gradient, ctx.where)
        return g[:, None] * gradient, None, None


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, gradient: Tensor, where: str) -> Tensor:
        ctx.where = where
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, None, None]:
        raise ConfigMismatchError(
            f"{ctx.where}: does not provide second derivatives, which this method needs; use a "
            "method that needs only the gradient (nuts, hmc, sgld, svgd, full_rank_vi)"
        )


def to_rows(theta: Tensor) -> Rows:
    """Convert θ [K, P] for the other package."""
    return theta.detach().to("cpu", torch.float64).contiguous().numpy()


def to_tensor(rows: Rows, like: Tensor) -> Tensor:
    """Convert the other package's results to the dtype and device of θ."""
    return torch.from_numpy(np.array(rows)).to(like.device, like.dtype)
