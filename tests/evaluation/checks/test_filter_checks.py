"""Checks of particle filters: weight on one particle, and observations without influence on the
weights."""

import math

import pytest
import torch
from support.series.small_sequences import sequence, system

from components.evaluation.checks.filters import observation_checks, particle_checks
from components.series.posteriors.filtered import Filtered


def test_degenerate_filter_is_detected():
    trace = [(t, {"ess": [300.0, 250.0]}) for t in range(1, 20)]
    (well,) = particle_checks(trace)
    (ill,) = particle_checks([*trace, (20, {"ess": [300.0, 1.5]}), (21, {"ess": [1.2, 9.0]})])
    assert [well.passed, ill.passed] == [True, False]
    assert ill.detail == "smallest ESS 1.2, below 2 at 2 of 21 recorded times, first t = 20"
    assert particle_checks([(1, {"log_evidence": 0.0})]) == []  # an exact filter has no particles


def filter_result(ess=None, weight=None):
    """A filter result with two replicates and five times."""
    nothing = torch.zeros(2, 5, 1)
    return Filtered(5, *[nothing] * 5, torch.zeros(2), ess=ess, weight=weight)


@pytest.mark.parametrize(
    ("least", "passed", "detail"),
    [
        (1.0, False, "smallest ESS 1, below 2 at 1 of 5 recorded times, first t = 3"),
        (7.5, True, "smallest ESS 7.5 at t = 3, of 5 recorded times"),
    ],
)
def test_weights_are_checked_at_unrecorded_times(least, passed, detail):
    ess = torch.full((2, 5), 80.0)
    ess[1, 2] = least
    (check,) = particle_checks([(1, {"ess": [80.0, 80.0]})], filter_result(ess))
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
        (check,) = observation_checks(posterior, problem)
        assert check.passed is passed, check
    assert "0 of 5 observations" in observation_checks(filter_result(equal), problem)[0].detail
    # an exact filter uses all observations
    assert observation_checks(filter_result(), problem) == []
    problem.observations[:] = math.nan
    # there are no observations
    assert observation_checks(filter_result(equal), problem)[0].passed is True
