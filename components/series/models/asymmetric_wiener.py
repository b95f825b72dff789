"""State-space model with linear Gaussian dynamics and asymmetric observation noise."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities import SplitNormal
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.registry import register
from components.series.models.linear_gaussian_ssm import BorrowedDynamics, LinearGaussianModule
from components.series.models.power_integral import log_power_integral
from components.series.sequence import Sequence


def log_split_normal(z: Tensor, below: float, above: float) -> Tensor:
    """log(1{z ≤ 0} N(z | 0, s_−²) + 1{z > 0} N(z | 0, s_+²)), element by element."""
    short = -0.5 * (z / below).square() - math.log(below)
    long = -0.5 * (z / above).square() - math.log(above)
    return torch.where(z <= 0, short, long) - 0.5 * LOG_2PI


class AsymmetricModule(BorrowedDynamics, nn.Module):
    """``StateSpace`` with linear Gaussian dynamics and the product of split normals as observation
    density."""

    Sigma: Tensor

    def __init__(
        self, dynamics: LinearGaussianModule, below: float, above: float, by_quadrature: bool
    ):
        super().__init__()
        self.dynamics = dynamics
        self.below = below
        self.above = above
        self.by_quadrature = by_quadrature
        self.register_buffer("Sigma", torch.eye(len(dynamics.Sigma)).to(dynamics.Sigma))
        self._integrals: dict[float, float] = {}  # power -> log ∫ of one coordinate

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        # [R, N]
        return log_split_normal(
            y.unsqueeze(-2) - self.observation_mean(x, t), self.below, self.above
        ).sum(-1)

    def log_observation_bound(self, t: int) -> float:
        """log sup g: both normals are largest at 0, where the one with the smaller scale is
        larger."""
        return -len(self.Sigma) * (math.log(min(self.below, self.above)) + 0.5 * LOG_2PI)

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ g(y|x)^a dy, the same for every x; []."""
        if power not in self._integrals:
            integral = (
                self.integral_by_quadrature if self.by_quadrature else self.integral_in_closed_form
            )
            self._integrals[power] = integral(power)
        return torch.as_tensor(
            len(self.Sigma) * self._integrals[power], device=x.device, dtype=x.dtype
        )

    def integral_in_closed_form(self, power: float) -> float:
        """Log integral log Σ_s ½ (2π s²)^{(1−a)/2} a^{−½} over both scales.

        Each scale adds half of the integral of a normal.
        """
        halves = [0.5 * (1 - power) * (LOG_2PI + 2 * math.log(s)) for s in (self.below, self.above)]
        return math.log(0.5 * sum(math.exp(h) for h in halves)) - 0.5 * math.log(power)

    def integral_by_quadrature(self, power: float) -> float:
        def log_density(z: Tensor) -> Tensor:
            return log_split_normal(z, self.below, self.above)

        return log_power_integral(log_density, power, [0.0], [self.below, self.above])


@register("model", "asymmetric_wiener")
class AsymmetricWienerSSM(Model[Sequence, AsymmetricModule]):
    """Linear Gaussian dynamics with split-normal observation noise.

    x_t = A x_{t−1} + N(0, Q), y_t = H x_t + ε_t,
    g(y|x) = Π_j [1{ε_j ≤ 0} N(ε_j | 0, s_−²) + 1{ε_j > 0} N(ε_j | 0, s_+²)],
    particles [R, N, dx]; equal scales give the normal distribution. The integral of g^{1+β},
    by quadrature or in closed form, is Π_j ½ Σ_s (2π s²)^{−β/2} (1 + β)^{−½}. The
    prediction of y is H x, where the noise is 0; Σ = I is the scale of a heavy-tailed density that
    replaces g.  A scale of null takes the value of the simulated noise.

    Raises ConfigMismatchError on data of another system.

    Source: Boustati (2021), eq. (6.19), section 6.5.3 and appendix D.3.5.
    """

    requires = Requirements(kinds={"sequence"}, simulated={SplitNormal})
    below: PositiveFloat | None
    above: PositiveFloat | None
    integral: Literal["quadrature", "closed_form"]

    def build(self, problem: Sequence, rng: Rng) -> AsymmetricModule:
        system = problem.system
        if not isinstance(system, SplitNormal):
            raise ConfigMismatchError(
                f"model={self.name}: needs the two noise scales, which dataset={problem.name} does not provide"
            )
        below = system.below if self.below is None else self.below
        above = system.above if self.above is None else self.above
        return AsymmetricModule(
            LinearGaussianModule(system), below, above, self.integral == "quadrature"
        )
