"""ChEES: the trajectory length that maximises the change in the chains' squared distance from their
mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.inference.hamiltonian.leapfrog import Phase
from components.inference.hamiltonian.mass import Mass

RATE = 0.05  # η of log T
DECAY = 0.95  # β₂ of its mean square gradient
CLIP = 3.0  # largest gradient, as a multiple of the root mean square of earlier ones


def halton(m: int) -> float:
    """The m-th point of Halton's sequence with base 2 in (0, 1), m = 1, 2, …: the binary digits of
    m reversed."""
    point = 0.0
    place = 0.5
    while m:
        point = point + place * (m & 1)
        m = m >> 1
        place = place / 2
    return point


def slope(before: Phase, after: Phase, rate: Tensor, mass: Mass, time: float) -> float:
    """Relative estimate of d ChEES / d log T from the proposed trajectories of C chains.

    ChEES = ¼ E[(‖θ′ − E θ′‖² − ‖θ − E θ‖²)²] in the norm of M, which makes it independent of the
    scales of directions.

        g = t (1/C) Σ_c α_c (‖θ′_c − θ̄′‖² − ‖θ_c − θ̄‖²) (θ′_c − θ̄′)ᵀ r′_c
            / ((1/C) Σ_c ‖θ_c − θ̄‖²)²,
        θ̄′ = Σ_c α_c θ′_c / Σ_c α_c,   θ̄ = (1/C) Σ_c θ_c.

    The trajectories have length ``time``.  The paper divides by Σ_c α_c, so that proposals rejected
    by every chain count in full.  Here they are weighted by acceptance rate.  The denominator makes
    g independent of the chains' distances; the paper's estimate grows with the fourth power of
    these distances while the chains are far from the target.  Chains that diverged have α = 0.

    Args:
        before: starts of the trajectories, θ and r [C, P].
        after: ends of the trajectories.
        rate: acceptance rates α [C], in [0, 1].
        mass: M.
        time: t, in units of time of M.

    Returns:
        g; NaN if all chains have the same position.

    Source: Hoffman, Radul & Sountsov (2021), eqs. (3), (7) and Algorithm 1; the two denominators
        differ from the paper.
    """
    # selecting rows would make the CPU wait for a GPU
    finite = (rate > 0).unsqueeze(1)
    alpha = torch.where(finite.squeeze(1), rate, 0.0)
    theta = torch.where(finite, after.theta, 0.0)
    r = torch.where(finite, after.r, 0.0)  # [C], [C, P], [C, P]
    ahead = theta - (alpha / alpha.sum().clamp(min=1e-12)) @ theta
    start = mass.square(before.theta - before.theta.mean(0))  # [C]
    change = mass.square(ahead) - start
    total = (alpha * time * change * (ahead * r).sum(1)).sum()
    return float(total / len(rate) / start.mean().square())


@dataclass(frozen=True)
class Length:
    """T, updated by Adam (β₁ = 0, β₂ = 0.95, rate η = 0.05) on log T; after warm-up its average is
    used.

        g ← g clipped to ± 3 √(v/(1 − β₂^{m−1}))  (m > 1),   v ← β₂ v + (1 − β₂) g²
        log T ← log T + η g / √(v/(1 − β₂^m)),   log T̄ ← m^−½ log T + (1 − m^−½) log T̄

    The paper does not clip and has η = 0.025: a single gradient a thousand times larger than the
    others then stalls log T for about a hundred steps, until v has decayed.

    Source: Hoffman, Radul & Sountsov (2021), Algorithm 1; the clipping and η differ from the paper.
    """

    log_length: float
    log_average: float
    second: float = 0.0
    m: int = 0

    @property
    def value(self) -> float:
        """T."""
        return math.exp(self.log_length)

    @staticmethod
    def of(length: float) -> Length:
        return Length(math.log(length), math.log(length))

    def learnt(self, gradient: float, most: float) -> Length:
        """One ascent step, up to ``most``; no step if the gradient is NaN."""
        if not math.isfinite(gradient):
            return self
        m = self.m + 1
        if self.second > 0:
            largest = CLIP * math.sqrt(self.second / (1 - DECAY**self.m))
            gradient = min(max(gradient, -largest), largest)
        second = DECAY * self.second + (1 - DECAY) * gradient**2
        scale = math.sqrt(second / (1 - DECAY**m))
        log_length = self.log_length + (RATE * gradient / scale if scale > 0 else 0.0)
        log_length = min(log_length, math.log(most))
        weight = m**-0.5
        return Length(log_length, weight * log_length + (1 - weight) * self.log_average, second, m)

    def stretch(self, factor: float) -> Length:
        """T converted to other units of time."""
        shift = math.log(factor)
        return replace(
            self, log_length=self.log_length + shift, log_average=self.log_average + shift
        )

    def average(self) -> Length:
        """Use T̄ from now on."""
        return Length(self.log_average, self.log_average)
