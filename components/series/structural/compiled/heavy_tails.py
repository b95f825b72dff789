"""Draws of heavy-tailed errors, compiled: the precision of each error, and degrees of freedom.

    ε_t = σ z_t,  z_t ~ N(0, 1/λ_t),  λ_t ~ Gamma(ν/2, ν/2);  ν known, or ν − 2 ~ Gamma(shape, rate)

Source: Geweke (1993), section 2.1; Gallego (2021), section 1.2.2, robustness.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from components.maths.compiled.loops import Array
from components.series.structural.compiled.truncated_gamma import counter_uniform, sample_gamma

SHRINKAGES = 200  # of a slice interval, which shrinks to 1e-60 of its length after half of them
LEAST = 2.0**-1022  # of a precision


class Tails(NamedTuple):
    """The prior of the errors."""

    is_student: bool
    is_nu_sampled: bool
    shape: float
    rate: float


def log_density_of_freedom(w: float, tails: Tails, z: Array, seen: Array) -> float:
    """log p(w | z) up to a constant, with the precisions integrated out: ν = 2 + shape/rate · w/(1
    − w)."""
    x = tails.shape / tails.rate * w / (1 - w)
    nu = 2 + x
    value = (tails.shape - 1) * math.log(x) - tails.rate * x - 2 * math.log(1 - w)
    constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu)
    for t in range(len(z)):
        if seen[t]:
            value += constant - (nu + 1) / 2 * math.log1p(z[t] * z[t] / nu)
    return value


def slice_freedom(tails: Tails, z: Array, seen: Array, nu: float, seed: Any) -> float:
    """ν by slice sampling of w in (0, 1), with shrinkage to the current value (Neal 2003, figure
    5)."""
    unit = tails.shape / tails.rate
    x = (nu - 2) / unit
    start = x / (1 + x)
    level = log_density_of_freedom(start, tails, z, seen) + math.log(counter_uniform(seed, 0))
    below = 0.0
    above = 1.0
    for k in range(1, SHRINKAGES + 1):
        w = below + (above - below) * counter_uniform(seed, k)
        if log_density_of_freedom(w, tails, z, seen) >= level:
            return 2 + unit * w / (1 - w)
        if w < start:
            below = w
        else:
            above = w
    return nu


def draw_precisions(z: Array, seen: Array, nu: float, seed: Any, precisions: Array) -> None:
    """λ_t | z_t ~ Gamma((ν + 1)/2, (ν + z_t²)/2); at missing times Gamma(ν/2, ν/2)."""
    k = 0
    for t in range(len(z)):
        shape = nu / 2
        rate = nu / 2
        if seen[t]:
            shape += 0.5
            rate += 0.5 * z[t] * z[t]
        g, k = sample_gamma(shape, seed, k)
        precisions[t] = max(g / rate, LEAST)
