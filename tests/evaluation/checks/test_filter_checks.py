"""Checks of particle filters: weight on one particle, and observations without influence on the
weights."""

import math
from types import SimpleNamespace

import pytest
import torch
from support.series.small_sequences import sequence, system

from components.series.posteriors.filtered import Filtered


def filter_result(ess=None, weight=None):
    """A filter result with two replicates and five times."""
    nothing = torch.zeros(2, 5, 1)
    return Filtered(*[nothing] * 4, 5, nothing, torch.zeros(2), ess=ess, weight=weight)


def checks(posterior, problem=None):
    return posterior.checks(SimpleNamespace(problem=problem))


@pytest.mark.parametrize(
    ("least", "passed", "detail"),
    [
        (1.2, False, "smallest ESS 1.2, below 2 at 1 of 5 recorded times, first t = 3"),
        (7.5, True, "smallest ESS 7.5 at t = 3, of 5 recorded times"),
    ],
)
def test_degenerate_filter_is_detected(least, passed, detail):
    ess = torch.full((2, 5), 80.0)
    ess[1, 2] = least
    (check,) = checks(filter_result(ess))
    assert (check.passed, check.detail) == (passed, detail)


def test_filter_that_ignores_observations_is_reported():
    problem = sequence(system(), 5, 2)
    equal = torch.full((2, 5), 100.0)
    uneven = torch.full((2, 5), 100.0)
    uneven[:, 3] = 60.0
    for posterior, passed in (
        (filter_result(equal), False),
        (filter_result(uneven), True),
        (filter_result(torch.linspace(30.5, 60.7, 10).view(2, 5)), True),
        (filter_result(weight=torch.full((2, 5), 1e-9)), False),
        (filter_result(weight=torch.tensor([[1e-9] * 4 + [1.0], [0.5] * 5])), True),
    ):
        *_, check = checks(posterior, problem)
        assert check.passed is passed, check
    assert "0 of 5 observations" in checks(filter_result(equal), problem)[1].detail
    # an exact filter uses all observations
    assert checks(filter_result(), problem) == []
    problem.observations[:] = math.nan
    # there are no observations
    assert checks(filter_result(equal), problem)[1].passed is True
