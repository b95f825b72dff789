"""Normals with an exponential scale: the integral over the scale, by quadrature."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# of the trapezoidal rule, which converges exponentially for an integrand that dies at both ends
NODES = 80
DROP = 25.0  # the nodes reach to where the integrand is below e^−25 of its largest value
STEPS = 6  # of Newton's method from above the root of a convex cubic
SMALLEST = 1e-30  # of r, at which the integral has no end


def log_scale_integral(r: Tensor, d: int) -> Tensor:
    """log ∫_0^∞ u^{−d} exp(−u − r²/(2u²)) du of r ≥ 0, in float64; [...] -> [...].

    The density of ξ ε at a distance r from 0, ξ ~ Exp(1), ε ~ N(0, I_d), is (2π)^{−d/2} times this.
    In v = log u the integrand is largest where u³ + (d − 1)u² = r²; to either side of that v it
    falls by ``DROP`` within lengths that are known, over which the nodes are spread.  It grows
    without bound as r → 0: like −log r for d = 1, like r^{1−d} else."""
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
