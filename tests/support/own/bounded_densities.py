"""Twenty log densities with bounded supports, and the exact means and standard deviations."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, gamma, pi, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

HALF_NORMAL = (sqrt(2 / pi), sqrt(1 - 2 / pi))
UNIFORM = (0.5, sqrt(1 / 12))


class Bounded(NamedTuple):
    """A log density of the rows of x [S, P], its supports and its moments."""

    log_density: Callable[..., Tensor]  # of the P columns [S]
    support: list[str]
    moments: list[tuple[float, float]]  # mean and standard deviation of each coordinate


def gamma_law(shape: float, rate: float) -> Bounded:
    return Bounded(
        lambda x: (shape - 1) * x.log() - rate * x,
        ["positive"],
        [(shape / rate, sqrt(shape) / rate)],
    )


def beta_law(a: float, b: float) -> Bounded:
    sd = sqrt(a * b / (a + b + 1)) / (a + b)
    return Bounded(
        lambda u: (a - 1) * u.log() + (b - 1) * (-u).log1p(), ["unit"], [(a / (a + b), sd)]
    )


def integrate_moments(
    log_density: Callable[[Tensor], Tensor], high: float, support: str
) -> Bounded:
    """Moments on (0, high) by the midpoint rule."""
    x = (torch.arange(400_000, dtype=torch.float64) + 0.5) * (high / 400_000)
    weight = log_density(x).exp()
    mean, second = (float(weight @ x**k / weight.sum()) for k in (1, 2))
    return Bounded(log_density, [support], [(mean, sqrt(second - mean**2))])


def half_normal(s: Tensor) -> Tensor:
    return -0.5 * s**2


def weibull(x: Tensor) -> Tensor:
    return x.log() - x**2


def kumaraswamy(u: Tensor) -> Tensor:
    return u.log() + 2 * (-(u**2)).log1p()


LAWS = {
    "half_normal": Bounded(half_normal, ["positive"], [HALF_NORMAL]),
    "half_normal_uniform": Bounded(
        lambda s, u: half_normal(s), ["positive", "unit"], [HALF_NORMAL, UNIFORM]
    ),
    "exponential": gamma_law(1.0, 1.0),
    "gamma": gamma_law(3.0, 2.0),
    "gamma_infinite_at_zero": gamma_law(0.5, 1.0),
    "inverse_gamma": Bounded(lambda x: -7 * x.log() - 5 / x, ["positive"], [(1.0, 0.5)]),
    "log_normal": Bounded(
        lambda x: -x.log() - 2 * x.log() ** 2,
        ["positive"],
        [(exp(0.125), exp(0.125) * sqrt(exp(0.25) - 1))],
    ),
    "weibull": Bounded(weibull, ["positive"], [(gamma(1.5), sqrt(1 - gamma(1.5) ** 2))]),
    "maxwell": Bounded(
        lambda x: 2 * x.log() - 0.5 * x**2, ["positive"], [(2 * sqrt(2 / pi), sqrt(3 - 8 / pi))]
    ),
    "half_student": integrate_moments(lambda x: -5.5 * (x**2 / 10).log1p(), 200.0, "positive"),
    "truncated_normal": integrate_moments(lambda x: -0.5 * (x + 1) ** 2, 12.0, "positive"),
    "doubly_truncated": integrate_moments(lambda u: -0.5 * ((u - 0.2) / 0.3) ** 2, 1.0, "unit"),
    "kumaraswamy": integrate_moments(kumaraswamy, 1.0, "unit"),
    "uniform": beta_law(1.0, 1.0),
    "arcsine": beta_law(0.5, 0.5),
    "beta": beta_law(2.0, 5.0),
    "beta_near_one": beta_law(20.0, 2.0),
    # τ ~ Gamma(4, 4), x | τ ~ N(0, 1/τ)
    "normal_gamma": Bounded(
        lambda tau, x: 3.5 * tau.log() - tau * (4 + 0.5 * x**2),
        ["positive", "real"],
        [(1.0, 0.5), (0.0, sqrt(4 / 3))],
    ),
    # λ ~ Gamma(5, 5), x | λ exponential with rate λ
    "exponential_gamma": Bounded(
        lambda rate, x: 5 * rate.log() - rate * (5 + x),
        ["positive", "positive"],
        [(1.0, sqrt(0.2)), (1.25, sqrt(25 / 6 - 25 / 16))],
    ),
    # u ~ Beta(2, 2), s | u half normal with scale u
    "scale_mixture": Bounded(
        lambda u, s: (-u).log1p() - 0.5 * (s / u) ** 2,
        ["unit", "positive"],
        [(0.5, sqrt(0.05)), (0.5 * sqrt(2 / pi), sqrt(0.3 - 0.5 / pi))],
    ),
}


def log_density(x: Tensor, name: str) -> Tensor:
    return LAWS[name].log_density(*x.T)
