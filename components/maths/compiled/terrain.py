"""The elevation map and the distance from a point as one compiled loop over particles."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from components.maths.compiled.elevation_map import PER_METRE, Dem, compilable, hills, multiples, peaks
from components.maths.compiled.loops import Array, compiled


def _sin_cos(u: float) -> tuple[float, float]:
    """sin u, cos u without a branch, so that a compiler can work on several u at once: error below 1e-12."""
    u = u - 2 * math.pi * math.floor(u / (2 * math.pi) + 0.5)  # [−π, π]
    v = u / 4
    v2 = v * v
    s = v * (1 - v2 / 6 * (1 - v2 / 20 * (1 - v2 / 42 * (1 - v2 / 72 * (1 - v2 / 110 * (1 - v2 / 156))))))
    c = 1 - v2 / 2 * (1 - v2 / 12 * (1 - v2 / 30 * (1 - v2 / 56 * (1 - v2 / 90 * (1 - v2 / 132 * (1 - v2 / 182))))))
    s, c = 2 * s * c, 1 - 2 * s * s
    return 2 * s * c, 1 - 2 * s * s


def _exp(z: float) -> float:
    """e^z = (e^{z/256})^256, likewise; relative error below 1e-7 for |z| ≤ 80, and held there beyond."""
    v = min(max(z, -80.0), 80.0) / 256
    e = 1 + v * (1 + v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6 * (1 + v / 7 * (1 + v / 8)))))))
    e2 = e * e
    e4 = e2 * e2
    e8 = e4 * e4
    e16 = e8 * e8
    e32 = e16 * e16
    e64 = e32 * e32
    e128 = e64 * e64
    return e128 * e128


def _observe(x: Array, east: float, north: float, dem: int, seen: Array) -> None:
    for i in range(x.shape[1]):
        a, b = float(x[0, i]), float(x[1, i])
        c, d = PER_METRE * a, PER_METRE * b
        sine, cosine = _sin_cos(c)
        sines, cosines = multiples(sine, cosine)
        if dem != 0:
            sine, cosine = _sin_cos(d)
            _, cosines = multiples(sine, cosine)
        near, middle = _exp(-c * c - (d + 1) * (d + 1)), _exp(-c * c - d * d)
        third = _exp(-(c + 1) * (c + 1) + (-d * d if dem == 2 else d * d))
        seen[0, i] = x[2, i] - (peaks(c, d, near, middle, third) + hills(sines, cosines))
        seen[1, i] = math.sqrt((a - east) * (a - east) + (b - north) * (b - north))


@cache
def _loop() -> Callable[[Array, float, float, int, Array], None]:
    return compiled(_observe, [*compilable, _sin_cos, _exp], fast=True)


def height_and_distance(x: Tensor, takeoff: tuple[float, float], dem: Dem) -> Tensor:
    """(z − DEM(a, b), distance of (a, b) from the point of take-off) of states x [..., 6] on the CPU -> [..., 2].

    Computed in float64 whatever the type of x.  Carries no gradient.

    Raises:
        ImportError: numba is not installed.
    """
    loop = _loop()
    columns = x[..., :3].reshape(-1, 3).T.contiguous()  # one row a coordinate: what vector instructions read
    seen = torch.empty_like(columns[:2])
    loop(columns.numpy(), *takeoff, ("as_released", "as_printed", "matlab").index(dem), seen.numpy())
    return seen.T.view(*x.shape[:-1], 2)
