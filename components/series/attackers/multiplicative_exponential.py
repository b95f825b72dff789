"""Noise occasionally multiplied by a random factor."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.attackers import Contamination
from components.contracts.roles import ZeroToOne
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import half_log_det
from components.maths.exponential.standard_draws import standard_uniform
from components.registry import register

# of the trapezoidal rule, which converges exponentially for an integrand that vanishes at both ends
NODES = 80

DROP = 25.0  # the nodes span the range where the integrand exceeds e^−25 of its maximum

STEPS = 6  # of Newton's method from above the root of a convex cubic

SMALLEST = 1e-30  # of r; the integral diverges as r → 0


def log_scale_integral(r: Tensor, d: int) -> Tensor:
    """log ∫_0^∞ u^{−d} exp(−u − r²/(2u²)) du for r ≥ 0, in float64; [...] -> [...].

    The density of ξ ε at a distance r from 0, ξ ~ Exp(1), ε ~ N(0, I_d), is (2π)^{−d/2} times this.
    In v = log u the integrand is largest where u³ + (d − 1)u² = r²; the nodes cover the distances
    on either side of that v within which it falls by ``DROP``.  It grows without bound as r → 0:
    like −log r for d = 1, otherwise like r^{1−d}."""
    r = r.double().clamp_min(SMALLEST)
    u = r.pow(2 / 3) if d == 1 else torch.minimum(r.pow(2 / 3), r / math.sqrt(d - 1))
    for _ in range(STEPS):
        u = u - (u.pow(3) + (d - 1) * u.square() - r.square()) / (3 * u.square() + 2 * (d - 1) * u)
    c = u + (d - 1)  # r²/u²
    above = torch.minimum(torch.log1p((DROP + c / 2) / u), (2 * DROP / u).sqrt())
    if d > 1:
        above = above.clamp_max(DROP / (d - 1) + 0.5)
    below = torch.minimum((DROP / c).sqrt(), 0.5 * torch.log1p(4 * DROP / c) + 0.5)
    width = above + below
    share = torch.linspace(0, 1, NODES, dtype=r.dtype, device=r.device)
    v = (u.log() - below).unsqueeze(-1) + width.unsqueeze(-1) * share  # [..., NODES]
    # du = u dv
    log_integrand = (1 - d) * v - v.exp() - 0.5 * r.square().unsqueeze(-1) * (-2 * v).exp()
    return torch.logsumexp(log_integrand, -1) + (width / (NODES - 1)).log()


@register("attacker", "multiplicative_exponential")
class MultiplicativeExponential(Contamination):
    """Multiplies an observation's noise, with small probability, by an exponential factor.

    ε_t ← ξ_t ε_t where b_t = 1, b_t ~ Bernoulli(p_c), ξ_t ~ Exp of mean ``scale``,
    ε_t = y_t − h(x_t); all coordinates of y_t [dy] share one factor.  The noise keeps its sign, and
    so any asymmetry.  N(0, Σ) noise becomes an infinite mixture over ξ; the oracle uses its
    density, computed by quadrature.

    Raises:
        ConfigMismatchError: the noise cannot be separated from the observations (recorded data).

    Source: Boustati (2021), section 6.5.3 and appendix D.3.5.
    """

    knowledge = "black box"
    probability: ZeroToOne
    scale: PositiveFloat

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A copy of the observations [R, T, dy], corrupted to h(x_t) + ξ_t (y_t − h(x_t)) where b_t
        = 1."""
        y = clean.y
        mean = clean.mean
        if mean is None:
            raise ConfigMismatchError(
                f"attacker={self.name}: multiplies the noise of the observations, which is unknown "
                "for this dataset; use a simulated dataset, or attacker=gaussian_contamination"
            )
        u = standard_uniform(y.shape[:2], rng.attack, y)  # [R, T]
        # 1 − u lies in (0, 1]: its logarithm is finite.
        xi = -self.scale * standard_uniform(y.shape[:2], rng.attack, y).neg().log1p()
        return torch.where(
            (u < self.probability).unsqueeze(-1), mean + xi.unsqueeze(-1) * (y - mean), y
        )

    def log_noise_density(self, deviation: Tensor, Sigma: Tensor) -> Tensor:
        """log[(1 − p_c) N(ε | 0, Σ) + p_c ∫ Exp(ξ) N(ε | 0, ξ² Σ) dξ] of ε = y' − E[y | x] [...,
        dy] -> [...].

        With r² = εᵀ Σ⁻¹ ε and s the mean of ξ the integral is (2π)^{−dy/2} |Σ|^{−½} s^{−dy} ∫
        u^{−dy} e^{−u − (r/s)²/(2u²)} du, which is unbounded at ε = 0: for dy > 1 the weights are
        heavy-tailed."""
        d = deviation.shape[-1]
        L = torch.linalg.cholesky(Sigma)
        r = torch.einsum("...ij,...j->...i", torch.linalg.inv(L), deviation).norm(dim=-1).double()
        constant = -half_log_det(L).double() - 0.5 * d * math.log(2 * math.pi)
        rate = r.new_tensor(self.probability)
        blown = log_scale_integral(r / self.scale, d) - d * math.log(self.scale)
        mixed = torch.logaddexp((1 - rate).log() - 0.5 * r.square(), rate.log() + blown)
        return (constant + mixed).to(deviation)
