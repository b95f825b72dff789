"""ChEES: the trajectory length at which the chains' squared distance from their mean changes most."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch import Tensor

from components.inference.hamiltonian.leapfrog import Phase
from components.inference.hamiltonian.mass import Mass


def halton(m: int) -> float:
    """The m-th point of Halton's sequence of base 2 in (0, 1), m = 1, 2, …: its binary digits read backwards."""
    point, place = 0.0, 0.5
    while m:
        point, m, place = point + place * (m & 1), m >> 1, place / 2
    return point


def slope(before: Phase, after: Phase, rate: Tensor, mass: Mass, time: float) -> float:
    """Estimate of d ChEES / d log T, up to a factor, from trajectories of length ``time`` that C chains proposed.

    ChEES = ¼ E[(‖θ′ − E θ′‖² − ‖θ − E θ‖²)²], the norm that of M, so that no direction outweighs the others by its scale:
    Σ_c α_c t (‖θ′_c − θ̄′‖² − ‖θ_c − θ̄‖²) (θ′_c − θ̄′)ᵀ r′_c / Σ_c α_c.  Chains that diverged have α = 0.

    Source: Hoffman, Radul & Sountsov (2021), eqs. (3), (7) and Algorithm 1."""
    kept = rate > 0
    weight = (rate / rate.sum().clamp(min=1e-12))[kept]  # [C']
    theta, r = after.theta[kept], after.r[kept]
    ahead = theta - weight @ theta
    change = mass.square(ahead) - mass.square(before.theta - before.theta.mean(0))[kept]
    return float((weight * time * change * (ahead * r).sum(1)).sum())


def harmonic(rate: Tensor) -> float:
    """Harmonic mean over the chains of their acceptance rates, which a chain that is stuck pulls down."""
    return float(1 / (1 / rate).mean())


@dataclass(frozen=True)
class Length:
    """T, moved by Adam (β₁ = 0, β₂ = 0.95, rate 0.025) on log T; its average is what stays after warm-up.

    Source: Hoffman, Radul & Sountsov (2021), Algorithm 1."""

    log_length: float
    log_average: float
    second: float = 0.0
    m: int = 0

    @staticmethod
    def of(length: float) -> Length:
        return Length(math.log(length), math.log(length))

    def learnt(self, gradient: float, most: float) -> Length:
        """One step uphill, not beyond ``most``; none where the gradient is not a number."""
        if not math.isfinite(gradient):
            return self
        m = self.m + 1
        second = 0.95 * self.second + 0.05 * gradient**2
        scale = math.sqrt(second / (1 - 0.95**m))
        log_length = self.log_length + (0.025 * gradient / scale if scale > 0 else 0.0)
        log_length = min(log_length, math.log(most))
        weight = m**-0.5
        return Length(log_length, weight * log_length + (1 - weight) * self.log_average, second, m)

    def stretched(self, factor: float) -> Length:
        """T in other units of time, as long as before."""
        shift = math.log(factor)
        return replace(self, log_length=self.log_length + shift, log_average=self.log_average + shift)

    def averaged(self) -> Length:
        """T̄ from now on."""
        return Length(self.log_average, self.log_average)
