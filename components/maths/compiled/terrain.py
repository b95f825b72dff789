"""The elevation map and the distance from a point as one compiled loop over particles."""

from __future__ import annotations

import math

from torch import Tensor

from components.maths.compiled.elevation_map import (
    PER_METRE,
    ElevationMapVersion,
    hills,
    multiples,
    peaks,
)
from components.maths.compiled.functions import sin_cos
from components.maths.compiled.loops import Array, compiled


def _exp(z: float) -> float:
    """e^z = (e^{z/256})^256; relative error below 1e-7 for |z| ≤ 80, with z clipped to this
    range."""
    v = min(max(z, -80.0), 80.0) / 256
    e = 1.0
    for k in range(8, 0, -1):
        e = 1 + v / k * e
    for _ in range(8):
        e *= e
    return e


def _look(x: Array, east: float, north: float, dem: int, seen: Array) -> None:
    for i in range(x.shape[1]):
        a = float(x[0, i])
        b = float(x[1, i])
        c = PER_METRE * a
        d = PER_METRE * b
        sine, cosine = sin_cos(c)
        sines, cosines = multiples(sine, cosine)
        if dem != 0:
            sine, cosine = sin_cos(d)
            _, cosines = multiples(sine, cosine)
        near = _exp(-c * c - (d + 1) * (d + 1))
        middle = _exp(-c * c - d * d)
        third = _exp(-(c + 1) * (c + 1) + (-d * d if dem == 2 else d * d))
        seen[0, i] = x[2, i] - (peaks(c, d, near, middle, third) + hills(sines, cosines))
        seen[1, i] = math.sqrt((a - east) * (a - east) + (b - north) * (b - north))


@compiled(fast=True)
def _observe(x: Array, east: float, north: float, dem: int, seen: Array) -> None:
    for r in range(len(x)):
        _look(x[r], east, north, dem, seen[r])


def height_and_distance(
    x: Tensor, takeoff: tuple[float, float], dem: ElevationMapVersion
) -> Tensor:
    """(z − DEM(a, b), distance of (a, b) from the take-off point) for states x [..., N, 6] on the
    CPU -> [..., N, 2].

    Computed in float64 for every dtype of x.  Not differentiable.
    """
    # contiguous by coordinate, for vector instructions
    columns = x.transpose(-2, -1).contiguous()
    out = columns.new_empty(*x.shape[:-2], 2, x.shape[-2])
    dem_index = ("as_released", "as_printed", "matlab").index(dem)
    _observe(
        columns.view(-1, *columns.shape[-2:]).numpy(),
        *takeoff,
        dem_index,
        out.view(-1, *out.shape[-2:]).numpy(),
    )
    return out.transpose(-2, -1)
