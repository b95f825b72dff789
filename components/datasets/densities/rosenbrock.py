"""Rosenbrock's function as a log density, with a narrow curved ridge for each pair of
coordinates."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.densities.normal_start import NormalStart
from components.problems.density import Density
from components.registry import register

Even = Annotated[int, Field(ge=2, multiple_of=2)]


@register("dataset", "rosenbrock")
class Rosenbrock(NormalStart):
    """Independent pairs of coordinates; the energy is Rosenbrock's function over a temperature.

    log π(θ) = −Σ_i [(1 − u_i)² + c (v_i − u_i²)²]/T + const, θ = (u_1, v_1, u_2, …) [K, P].  So u ~
    N(1, T/2) and v | u ~ N(u², T/2c), with all moments in closed form: E[u] = 1, E[v] = E[u²] = 1 +
    T/2, E[v²] = E[u⁴] + T/2c.

    Source: Goodman and Weare (2010), section 5, a pair with c = 100, T = 20; Pagani, Wiegand and Nadarajah (2022), section
    2.1, for many pairs.
    """

    dim: Even
    curvature: PositiveFloat
    temperature: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Density:
        c = self.curvature
        T = self.temperature
        variance = T / 2
        width = variance / c  # Var[v | u]
        pairs = self.dim // 2
        log_constant = -pairs * (math.log(2 * math.pi) + 0.5 * math.log(variance * width))

        def log_density(theta: Tensor) -> Tensor:
            u = theta[:, ::2]
            v = theta[:, 1::2]
            energy = (1 - u).square() + c * (v - u.square()).square()
            return log_constant - energy.sum(1) / T  # [K]

        def per_pair(of_u: float, of_v: float) -> Tensor:
            return setting.tensor([of_u, of_v] * pairs)

        m2, m4, m8 = (_power_moment(k, variance) for k in (2, 4, 8))
        reach = 3.5 * math.sqrt(variance)
        return self.make_density(
            setting,
            [f"{name}{i}" for i in range(1, pairs + 1) for name in ("u", "v")],
            log_density,
            mean=per_pair(1.0, m2),
            second_moment=per_pair(m2, m4 + width),
            fourth_moment=per_pair(m4, m8 + 6 * width * m4 + 3 * width**2),
            log_normaliser=0.0,
            box=[(1 - reach, 1 + reach), (-4.0, (1 + reach) ** 2)] * pairs,
        )


def _power_moment(power: int, variance: float) -> float:
    """E[u^power] for u ~ N(1, variance): Σ_j C(power, 2j) (2j − 1)!! variance^j."""
    return sum(
        math.comb(power, 2 * j) * math.prod(range(1, 2 * j, 2)) * variance**j
        for j in range(power // 2 + 1)
    )
