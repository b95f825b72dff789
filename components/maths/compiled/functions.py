"""Elementary functions without a branch, so that a compiler can work on several numbers at once."""

from __future__ import annotations

import math

LOG_2 = math.log(2)
ROOT_2 = math.sqrt(2)


def turned(v: float) -> tuple[float, float]:
    """sin 4v, cos 4v for |v| ≤ π/4: error below 1e-12."""
    v2 = v * v
    s = v * (1 - v2 / 6 * (1 - v2 / 20 * (1 - v2 / 42 * (1 - v2 / 72 * (1 - v2 / 110 * (1 - v2 / 156))))))
    c = 1 - v2 / 2 * (1 - v2 / 12 * (1 - v2 / 30 * (1 - v2 / 56 * (1 - v2 / 90 * (1 - v2 / 132 * (1 - v2 / 182))))))
    s, c = 2 * s * c, 1 - 2 * s * s
    return 2 * s * c, 1 - 2 * s * s


def sin_cos(u: float) -> tuple[float, float]:
    """sin u, cos u: error below 1e-12."""
    u = u - 2 * math.pi * math.floor(u / (2 * math.pi) + 0.5)  # [−π, π]
    return turned(u / 4)


def log_of(m: float, exponent: float) -> float:
    """log(m 2^exponent) for 1 ≤ m ≤ 2: relative error below 1e-14.

    log m = 2 artanh((m − 1)/(m + 1)), halved first where m is beyond √2."""
    beyond = m > ROOT_2
    m = m * 0.5 if beyond else m
    exponent = exponent + 1.0 if beyond else exponent
    s = (m - 1) / (m + 1)
    s2 = s * s
    rest = 1 / 9 + s2 * (1 / 11 + s2 * (1 / 13 + s2 * (1 / 15 + s2 * (1 / 17 + s2 / 19))))
    return exponent * LOG_2 + 2 * s * (1 + s2 * (1 / 3 + s2 * (1 / 5 + s2 * (1 / 7 + s2 * rest))))
