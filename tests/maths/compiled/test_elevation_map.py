"""The elevation map compared with the printed formula, and the compiled loop with the map."""

import math

import pytest
import torch
from support.runs.configured import F64, double, draw_uniform

from components.maths.compiled import terrain
from components.maths.compiled.elevation_map import elevation

TAKEOFF = (-7.5e3, 5e3)
MAPS = ("as_released", "as_printed", "matlab")


def literal(a, b, dem):
    """DEM(a, b) of D.3.4, with the errors in print and in the released code."""
    q = 3 / 2.96e4
    alpha = (300, 80, 60, 40, 20, 10)
    omega = (5, 10, 20, 30, 80, 150)
    psi = (4, 10, 20, 40, 90, 150)
    c = q * a
    d = q * b
    third = -((c + 1) ** 2) - d**2 if dem == "matlab" else -((c + 1) ** 2) + d**2
    peaks = 200 * (
        3 * (1 - c) ** 2 * math.exp(-(c**2) - (d + 1) ** 2)
        - 10 * (c / 5 - c**3 - d**5) * math.exp(-(c**2) - d**2)
        - math.exp(third) / 3
    )
    second = a if dem == "as_released" else b
    hills = (
        al * math.sin(o * q * a) * math.cos(p * q * second)
        for al, o, p in zip(alpha, omega, psi, strict=True)
    )
    return peaks + sum(hills)


def flights(dtype):
    """States covering the terrain of the released trajectory."""
    x = draw_uniform(3, 200, 6, seed=1)
    x[..., 0] = -8e3 + 2.2e4 * x[..., 0]
    x[..., 1] = 4e3 + 2e4 * x[..., 1]
    return x.to(dtype)


def literal_rows(x, dem):
    rows = [
        [z - literal(a, b, dem), math.hypot(a - TAKEOFF[0], b - TAKEOFF[1])]
        for a, b, z, *_ in x.double().flatten(0, 1).tolist()
    ]
    return double(rows).view(*x.shape[:2], 2)


@pytest.mark.parametrize(("dtype", "metres"), [(F64, 1e-8), (torch.float32, 0.05)])
@pytest.mark.parametrize("dem", MAPS)
def test_elevation_equals_the_printed_formula(dem, dtype, metres):
    x = flights(dtype)
    heights = x[..., 2] - elevation(x[..., 0], x[..., 1], dem)
    assert (heights.double() - literal_rows(x, dem)[..., 0]).abs().max() < metres


@pytest.mark.parametrize("dem", MAPS)
def test_compiled_loop_gives_the_same_elevation(dem):
    for dtype, height, distance in ((F64, 1e-6, 1e-9), (torch.float32, 0.05, 0.01)):
        x = flights(dtype)
        measured = terrain.height_and_distance(x, TAKEOFF, dem)
        error = (measured.double() - literal_rows(x, dem)).abs().amax((0, 1))
        assert error[0] < height
        assert error[1] < distance
        assert measured.dtype == dtype
        assert measured.shape == (3, 200, 2)


def test_compiled_loop_is_finite_far_off_the_map():
    x = torch.full((1, 1, 6), 1e6)
    assert terrain.height_and_distance(x, TAKEOFF, "matlab").isfinite().all()
