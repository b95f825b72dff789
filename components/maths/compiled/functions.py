"""Branch-free elementary functions that a compiler can vectorise."""

from __future__ import annotations

import math

LOG_2 = math.log(2)
ROOT_2 = math.sqrt(2)


def sin_cos_4(v: float) -> tuple[float, float]:
    """sin 4v, cos 4v for |v| ≤ π/4: error below 1e-12."""
    v2 = v * v
    s = 1.0
    c = 1 - v2 / 182
    for k in range(12, 0, -2):
        s = 1 - v2 / (k * (k + 1)) * s
        c = 1 - v2 / (k * (k - 1)) * c
    s = v * s
    s, c = 2 * s * c, 1 - 2 * s * s
    return 2 * s * c, 1 - 2 * s * s


def sin_cos(u: float) -> tuple[float, float]:
    """sin u, cos u: error below 1e-12."""
    u = u - 2 * math.pi * math.floor(u / (2 * math.pi) + 0.5)  # [−π, π]
    return sin_cos_4(u / 4)


def log_scaled(m: float, exponent: float) -> float:
    """log(m 2^exponent) for 1 ≤ m ≤ 2: relative error below 1e-14.

    log m = 2 artanh((m − 1)/(m + 1)), with m halved first if m > √2."""
    beyond = m > ROOT_2
    m = m * 0.5 if beyond else m
    exponent = exponent + 1.0 if beyond else exponent
    s = (m - 1) / (m + 1)
    s2 = s * s
    series = 1 / 17 + s2 / 19
    for k in range(15, 0, -2):
        series = 1 / k + s2 * series
    return exponent * LOG_2 + 2 * s * series


def exp_digamma(x: float) -> float:
    """exp ψ(x) for x > 0, with relative error below 1e-11.

    ψ(x) = ψ(x + 10) − Σ_{i<10} 1/(x + i), with pairs of terms over a common denominator, and exp
    ψ(u + ½) by its series for large u.  The exponential is computed from 1/1024 of the argument by
    ten squarings.
    """
    y = x * (x + 9)
    a = y + 8
    b = y + 14
    c = y + 18
    d = y + 20
    ab = a * b
    cd = c * d
    below = (2 * x + 9) * (ab * cd + y * ((a + b) * cd + (c + d) * ab)) / (y * ab * cd)
    u = x + 9.5
    w = 1 / (u * u)
    above = u * (
        1 + w * (1 / 24 - w * (37 / 5760 - w * (10313 / 2903040 - w * (5509121 / 1393459200))))
    )
    v = below * (-1 / 1024)
    e = 1 + v * (1 + v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6 * (1 + v / 7))))))
    for _ in range(10):
        e *= e
    return above * e
