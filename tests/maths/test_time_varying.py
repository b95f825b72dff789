"""The filter of time-varying systems with missing observations."""

import torch
from support.series.structural_series import F64, block, draw_theta, model, problem

from components.maths.time_varying import filter_system


def test_missing_values_change_nothing():
    """A system with singular noise, a static state and a stock."""
    data = problem(times=14, missing=(2, 3, 11))
    built = model(
        "semilocal_trend",
        block("seasonal", period=3),
        "nerlove_arrow",
        "dynamic_regression",
        of=data,
    )
    design = built.design(data.series)
    system = built.system(draw_theta(built), design)
    other = design.y.clone()
    other[~design.seen] = 1e6

    filtered_data, two = (filter_system(system, y, design.seen.tolist()) for y in (design.y, other))

    assert torch.equal(filtered_data.log_density, two.log_density)
    assert torch.equal(filtered_data.a, two.a)
    assert filtered_data.a.dtype == F64
