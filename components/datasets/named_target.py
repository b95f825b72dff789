"""A log density of named variables over unconstrained θ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.roles import Setting
from components.figures.samples.trace import trace
from components.maths.bijectors import Interval, LowerBounded, Ordered, Simplex
from components.maths.exponential.standard_draws import standard_normal
from components.problems.density import Density


@dataclass(frozen=True)
class Variable:
    """A block of unknowns, its bijection from θ (identity if None), and its start θ ~ N(centre,
    spread²), elementwise."""

    name: str
    size: int = 1  # of θ
    bijector: LowerBounded | Interval | Ordered | Simplex | None = None
    centre: float | Tensor = 0.0
    spread: float | Tensor = 1.0

    @property
    def names(self) -> list[str]:
        n = self.size + isinstance(self.bijector, Simplex)
        return [self.name] if n == 1 else [f"{self.name}[{i}]" for i in range(1, n + 1)]


def transform(variables: tuple[Variable, ...], theta: Tensor) -> tuple[list[Tensor], Tensor]:
    """Variables [K, size] each, and the log-Jacobian [K]."""
    values = []
    log_jacobian = theta.new_zeros(len(theta))
    blocks = theta.split([v.size for v in variables], 1)
    for variable, block in zip(variables, blocks, strict=True):
        if variable.bijector is not None:
            block, slope = variable.bijector.forward(block)
            log_jacobian = log_jacobian + slope
        values.append(block)
    return values, log_jacobian


@dataclass(eq=False)
class NamedVariables:
    """A density of θ [K, P] for K chains in parallel, and parameters [K, P'] that are functions of
    θ."""

    variables: tuple[Variable, ...]
    # θ [K, P] -> [K], up to a constant, with the log-Jacobian
    log_density: Callable[[Tensor], Tensor]
    like: Tensor  # for the dtype and device of new tensors
    # variables -> reported parameters, if samplers use other coordinates
    report: Callable[..., tuple[Tensor, ...]] | None = None
    recover: Callable[..., tuple[Tensor, ...]] | None = None  # the inverse of ``report``

    @property
    def names(self) -> list[str]:
        return [name for v in self.variables for name in v.names]

    @property
    def dim(self) -> int:
        return sum(v.size for v in self.variables)

    def constrain(self, theta: Tensor) -> Tensor:
        values = transform(self.variables, theta)[0]
        return torch.cat(self.report(*values) if self.report else values, 1)

    def unconstrain(self, parameters: Tensor) -> Tensor:
        values = parameters.split([len(v.names) for v in self.variables], 1)
        values = self.recover(*values) if self.recover else values
        pairs = zip(self.variables, values, strict=True)
        return torch.cat([v.bijector.inverse(x) if v.bijector else x for v, x in pairs], 1)

    def start(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P] from the normal starts of the variables, around the posterior and mostly
        wider."""
        z = standard_normal((n, self.dim), generator, self.like)
        blocks = z.split([v.size for v in self.variables], 1)
        pairs = zip(self.variables, blocks, strict=True)
        return torch.cat([v.centre + v.spread * block for v, block in pairs], 1)

    def to_density(
        self, name: str, setting: Setting, centre: Tensor, sd: Tensor, **fields: Any
    ) -> Density:
        """The problem, with a box of five standard deviations ``sd`` [P'] around ``centre`` [P']
        and the given fields."""
        shown: dict[str, Any] = {"names": self.names, "constrain": self.constrain}
        return Density(
            **shown | fields,
            name=name,
            replicates=setting.replicates,
            log_density=self.log_density,
            sample_prior=self.start,
            box=[(float(m - 5 * s), float(m + 5 * s)) for m, s in zip(centre, sd, strict=True)],
            free=self.dim,
            figures=[trace],
        )


class NamedTarget(NamedVariables):
    """A target given by the formula of its log density."""

    def scale(self, mean: Tensor, sd: Tensor) -> Tensor | None:
        """Standard deviations of θ [P] from the variables' ones, by the slope of each bijection at
        the mean; None if other parameters are reported."""
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


def joint_target(
    variables: tuple[Variable, ...],
    log_joint: Callable[..., Tensor],
    like: Tensor,
    report: Callable[..., tuple[Tensor, ...]] | None = None,
) -> NamedTarget:
    """The target log π(θ) = log p(variables, data) + Σ log |∂ variable/∂θ|, θ [K, P].

    ``log_joint``: variables [K, size] each -> [K], up to a constant."""

    def log_density(theta: Tensor) -> Tensor:
        values, log_jacobian = transform(variables, theta)
        return log_joint(*values) + log_jacobian

    return NamedTarget(variables, log_density, like, report)
