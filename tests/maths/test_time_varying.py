"""The smoother of time-varying systems against the dense Gaussian of states and observations."""

from __future__ import annotations

import pytest
import torch

from components.maths.time_varying import filter_system, smooth_system
from tests.structural_series import F64, block, joint, model, problem, some_theta

MISSING = (2, 3, 11)
SETS = 2


@pytest.fixture(scope="module")
def case():
    """A system with singular noises, a static state and a stock; its data, and the exact posterior
    of its states."""
    data = problem(times=14, missing=MISSING)
    built = model(
        "semilocal_trend",
        block("seasonal", period=3),
        "nerlove_arrow",
        "dynamic_regression",
        of=data,
    )
    design = built.design(data.series)
    system = built.system(some_theta(built, SETS), design)
    exact = []
    for c in range(SETS):
        whole, mean, C = joint(system, c)
        seen = design.seen
        n, d = mean.shape
        cross = torch.einsum("sitj,tj->sit", C, system.F)[:, :, seen].flatten(0, 1)
        S = whole.covariance_matrix[seen][:, seen]
        lift = torch.linalg.solve(S, cross.T).T
        post = mean.flatten() + lift @ (design.y[seen] - whole.loc[seen])
        exact.append((post.view(n, d), C.reshape(n * d, n * d) - lift @ cross.T))
    return system, design, exact


def test_smoothed_moments(case):
    system, design, exact = case

    mean, covariance = smooth_system(system, design.y, design.seen.tolist())

    for c, (expected, spread) in enumerate(exact):
        n, d = expected.shape
        own = torch.stack([spread.view(n, d, n, d)[t, :, t] for t in range(n)])
        assert torch.allclose(mean[c], expected, rtol=1e-8, atol=1e-8)
        assert torch.allclose(covariance[c], own, rtol=1e-7, atol=1e-7)


def test_what_is_not_seen_changes_nothing(case):
    system, design, _ = case
    other = design.y.clone()
    other[~design.seen] = 1e6

    one, two = (filter_system(system, y, design.seen.tolist()) for y in (design.y, other))

    assert torch.equal(one.log_density, two.log_density)
    assert torch.equal(one.a, two.a)
    assert one.a.dtype == F64
