"""Mean functions of Gaussian processes."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

Mean = Literal["zero", "constant", "linear"]


class MeanFunction(nn.Module):
    """m_t(x) = 0, b_t, or w_tᵀ x + b_t, with w and b point estimates initialised at 0."""

    def __init__(self, form: Mean, n_tasks: int, like: Tensor):
        super().__init__()
        self.weight = (
            nn.Parameter(like.new_zeros(n_tasks, like.shape[-1])) if form == "linear" else None
        )
        self.bias = nn.Parameter(like.new_zeros(n_tasks)) if form != "zero" else None

    def forward(self, x: Tensor, task: Tensor) -> Tensor | float:
        """m at points (x [G, n, D], task [G, n]) -> [G, n], or 0."""
        if self.bias is None:
            return 0.0
        bias = self.bias[task]
        return bias if self.weight is None else (self.weight[task] * x).sum(-1) + bias

    def log_hyperprior(self, scale: float) -> Tensor | float:
        """b_t ~ N(0, s²) and w_td ~ N(0, s²/D), so w_tᵀ x has variance s² for standardised inputs;
        up to a constant."""
        if self.bias is None:
            return 0.0
        squares = self.bias.square().sum()
        if self.weight is not None:
            squares = squares + self.weight.shape[1] * self.weight.square().sum()
        return -0.5 * squares / scale**2


def log_normal(log_value: Tensor, initial: float, scale: float) -> Tensor:
    """log N(ln v | ln v₀, s²) up to a constant, summed."""
    return -0.5 * ((log_value - math.log(initial)) / scale).square().sum()
