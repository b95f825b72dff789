"""A log density of named variables over unconstrained θ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.bijectors import Interval, LowerBounded
from components.maths.exponential.standard_draws import standard_normal


@dataclass(frozen=True)
class Variable:
    """A block of unknowns, its bijection from θ (None: it is θ), and a start N(centre, spread²)
    of θ."""

    name: str
    size: int = 1
    bijector: LowerBounded | Interval | None = None
    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True)
class NamedTarget:
    """log π(θ) = log p(variables, data) + Σ log |∂ variable/∂θ|, θ [K, P]."""

    variables: tuple[Variable, ...]
    log_joint: Callable[..., Tensor]  # variables [K, size] each -> [K], up to a constant
    like: Tensor  # for the type and device of new tensors
    # variables -> the reported parameters, for samplers that move in other coordinates
    report: Callable[..., tuple[Tensor, ...]] | None = None

    @property
    def names(self) -> list[str]:
        return [
            v.name if v.size == 1 else f"{v.name}[{i}]"
            for v in self.variables
            for i in range(1, v.size + 1)
        ]

    @property
    def dim(self) -> int:
        return sum(v.size for v in self.variables)

    def _transform(self, theta: Tensor) -> tuple[list[Tensor], Tensor]:
        """Variables [K, size] each, and the log-Jacobian [K]."""
        values = []
        log_jacobian = theta.new_zeros(len(theta))
        blocks = theta.split([v.size for v in self.variables], 1)
        for variable, block in zip(self.variables, blocks, strict=True):
            if variable.bijector is not None:
                block, slope = variable.bijector.forward(block)
                log_jacobian = log_jacobian + slope
            values.append(block)
        return values, log_jacobian

    def log_density(self, theta: Tensor) -> Tensor:
        values, log_jacobian = self._transform(theta)
        return self.log_joint(*values) + log_jacobian

    def constrain(self, theta: Tensor) -> Tensor:
        values = self._transform(theta)[0]
        return torch.cat(self.report(*values) if self.report else values, 1)

    def scale(self, mean: Tensor, sd: Tensor) -> Tensor | None:
        """Standard deviations of θ [P] from those of the variables, by the slope of each bijection at
        the mean; None: other parameters are reported."""
        if self.report is not None:
            return None
        blocks = []
        sizes = [v.size for v in self.variables]
        for v, m, s in zip(self.variables, mean.split(sizes), sd.split(sizes), strict=True):
            log_slope = torch.zeros_like(m)
            if v.bijector is not None:
                log_slope = v.bijector.forward(v.bijector.inverse(m).unsqueeze(1))[1]
            blocks.append(s / log_slope.exp())
        return torch.cat(blocks)

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P] from the normal starts of the variables."""
        z = standard_normal((n, self.dim), generator, self.like)
        blocks = z.split([v.size for v in self.variables], 1)
        pairs = zip(self.variables, blocks, strict=True)
        return torch.cat([v.centre + v.spread * block for v, block in pairs], 1)
