"""An analytic elevation map for terrain-aided navigation."""

from __future__ import annotations

from typing import Literal, TypeVar

import torch
from torch import Tensor

ElevationMapVersion = Literal["as_released", "as_printed", "matlab"]
V = TypeVar("V", Tensor, float)  # tensors here, single numbers where the map is compiled

PER_METRE = 3 / 2.96e4  # q: units of the map per metre
Six = tuple[V, V, V, V, V, V]


def _double_angle(s: V, c: V) -> tuple[V, V]:
    """sin 2u, cos 2u from sin u, cos u."""
    return 2 * s * c, 1 - 2 * s * s


def _plus(s: V, c: V, s_: V, c_: V) -> tuple[V, V]:
    """sin(u + v), cos(u + v) from the sines and cosines of u and of v."""
    return s * c_ + c * s_, c * c_ - s * s_


def multiples(s: V, c: V) -> tuple[Six[V], Six[V]]:
    """sin ωu for ω = 5, 10, 20, 30, 80, 150 and cos ψu for ψ = 4, 10, 20, 40, 90, 150, from sin u
    and cos u.

    Uses the addition theorems: two transcendental functions instead of twelve."""
    s2, c2 = _double_angle(s, c)
    s4, c4 = _double_angle(s2, c2)
    s5, c5 = _plus(s4, c4, s, c)
    s10, c10 = _double_angle(s5, c5)
    s20, c20 = _double_angle(s10, c10)
    s40, c40 = _double_angle(s20, c20)
    s80, c80 = _double_angle(s40, c40)
    s30, c30 = _plus(s20, c20, s10, c10)
    _, c90 = _plus(s80, c80, s10, c10)
    s70, c70 = _plus(s40, c40, s30, c30)
    s150, c150 = _plus(s80, c80, s70, c70)
    return (s5, s10, s20, s30, s80, s150), (c4, c10, c20, c40, c90, c150)


def hills(sines: Six[V], cosines: Six[V]) -> V:
    """Σ_i α_i sin(ω_i u) cos(ψ_i v), α = 300, 80, 60, 40, 20, 10."""
    return (
        300 * sines[0] * cosines[0]
        + 80 * sines[1] * cosines[1]
        + 60 * sines[2] * cosines[2]
        + 40 * sines[3] * cosines[3]
        + 20 * sines[4] * cosines[4]
        + 10 * sines[5] * cosines[5]
    )


def peaks(c: V, d: V, near: V, middle: V, third: V) -> V:
    """200(3(1 − c)² e^{−c²−(d+1)²} − 10(c/5 − c³ − d⁵) e^{−c²−d²} − ⅓ e^{third}), given the three
    exponentials."""
    d2 = d * d
    return (
        600 * (1 - c) * (1 - c) * near
        - 2000 * (c / 5 - c * c * c - d2 * d2 * d) * middle
        - 200 / 3 * third
    )


def elevation(a: Tensor, b: Tensor, dem: ElevationMapVersion) -> Tensor:
    """DEM(a, b) in m, at east a and north b in m [...].

    peaks(qa, qb) + Σ_i α_i sin(ω_i qa) cos(ψ_i qb), q = 3/2.96e4.  ``as_printed``: the third
    exponent of peaks is −(c + 1)² + d²; ``matlab``: −(c + 1)² − d², as in the function of that
    name; ``as_released``: as printed, but with a in both factors of the sum, cos(ψ_i qa), as in the
    code released with the thesis.

    Source: Boustati (2021), appendix D.3.4."""
    c = PER_METRE * a
    d = PER_METRE * b
    c2 = c * c
    d2 = d * d
    sines, cosines = multiples(torch.sin(c), torch.cos(c))
    if dem != "as_released":
        _, cosines = multiples(torch.sin(d), torch.cos(d))
    middle = torch.exp(-c2 - d2)
    third = torch.exp(-(c + 1).square() + (-d2 if dem == "matlab" else d2))
    return peaks(c, d, torch.exp(-c2 - (d + 1).square()), middle, third) + hills(sines, cosines)
