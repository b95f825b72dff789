"""Smooth bijections from unconstrained to constrained numbers, with log-Jacobians.

Each acts on the last dimension, for any leading dimensions:

    x, log_jacobian = bijector.forward(theta)
                                     θ [..., n] -> x [..., n'], log |det ∂x/∂θ| [...]
    theta = bijector.inverse(x)

If x has density p(x), θ has log density log p(x(θ)) + log |det ∂x/∂θ|.

Source: Stan Development Team (2024), Reference Manual, chapter on constraint
transforms.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


@dataclass(frozen=True)
class LowerBounded:
    """x = l + e^θ > l;  log |∂x/∂θ| = Σ θ.  The bound is a number or [..., n]."""

    lower: float | Tensor

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        return self.lower + theta.exp(), theta.sum(-1)

    def inverse(self, x: Tensor) -> Tensor:
        return (x - self.lower).log()


POSITIVE = LowerBounded(0.0)


@dataclass(frozen=True)
class Interval:
    """x = l + (u − l) s(θ) in (l, u), with s the logistic function.

    log |∂x/∂θ| = Σ log (u − l) s(θ) s(−θ).  Bounds are numbers or [..., n]: one parameter
    may set the bounds of another.
    """

    lower: float | Tensor
    upper: float | Tensor

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        width = torch.as_tensor(self.upper - self.lower, dtype=theta.dtype, device=theta.device)
        log_slope = width.log() + logsigmoid(theta) + logsigmoid(-theta)
        return self.lower + width * theta.sigmoid(), log_slope.sum(-1)

    def inverse(self, x: Tensor) -> Tensor:
        return (x - self.lower).log() - (self.upper - x).log()


@dataclass(frozen=True)
class Ordered:
    """x_1 = θ_1 (or e^θ_1 > 0 if ``positive``), x_k = x_{k−1} + e^θ_k;  log |det| = Σ of the
    exponents θ."""

    positive: bool = False

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        exponents = theta if self.positive else theta[..., 1:]
        steps = torch.cat(
            [theta[..., : theta.shape[-1] - exponents.shape[-1]], exponents.exp()], -1
        )
        return steps.cumsum(-1), exponents.sum(-1)

    def inverse(self, x: Tensor) -> Tensor:
        first = x[..., :1].log() if self.positive else x[..., :1]
        return torch.cat([first, x.diff(dim=-1).log()], -1)


@dataclass(frozen=True)
class Simplex:
    """Stick breaking, θ [..., n] -> x [..., n+1] ≥ 0 with Σ x = 1; θ = 0 is the centre.

    z_k = s(θ_k − log(n + 1 − k)), x_k = z_k Π_{j<k}(1 − z_j);  log |det| = Σ_k log z_k + (n + 1 − k) log(1 − z_k), the
    Jacobian of the first n coordinates."""

    def _remaining_stick(self, n: int, like: Tensor) -> Tensor:
        # number of pieces after the k-th, n + 1 − k
        return torch.arange(n, 0, -1, dtype=like.dtype, device=like.device)

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        log_x, log_jacobian = self.log_forward(theta)
        return log_x.exp(), log_jacobian

    def log_forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """log x, which is finite even if x underflows, and the log-Jacobian of x."""
        remaining = self._remaining_stick(theta.shape[-1], theta)
        logit = theta - remaining.log()
        log_z = logsigmoid(logit)
        log_rest = logsigmoid(-logit)
        zero = torch.zeros_like(theta[..., :1])
        log_x = torch.cat([log_z, zero], -1) + torch.cat([zero, log_rest.cumsum(-1)], -1)
        return log_x, (log_z + remaining * log_rest).sum(-1)

    def inverse(self, x: Tensor) -> Tensor:
        after = x.flip(-1).cumsum(-1).flip(-1)[..., 1:]  # Σ_{j>k} x_j
        return x[..., :-1].log() - after.log() + self._remaining_stick(after.shape[-1], x).log()
