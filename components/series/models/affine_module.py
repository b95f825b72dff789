"""A linear Gaussian system with a constant shift of its states."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.series.models.linear_gaussian_ssm import LinearGaussianModule


class AffineModule(LinearGaussianModule):
    """Linear Gaussian system with x_t = A x_{t−1} + b + N(0, Q)."""

    shift: Tensor  # b [dx]

    def __init__(self, system: LinearGaussian, shift: Tensor):
        super().__init__(system)
        self.register_buffer("shift", shift.clone())

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        return super().transition(x, t, generator) + self.shift

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        return super().transition_mean(x, t) + self.shift

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return super().log_transition(x - self.shift, x_prev, t)

    def log_predictive(self, y: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return super().log_predictive(y - self.H @ self.shift, x_prev, t)

    def _predict_mean(self, y: Tensor, x_prev: Tensor) -> Tensor:
        return super()._predict_mean(y - self.H @ self.shift, x_prev) + self.shift
