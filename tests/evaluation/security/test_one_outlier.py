"""One outlier between two recorded times is detected by the check of weights."""

from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component
from support.series.small_sequences import run, sequence, system

from components.metrics import limits
from runner.execution.rng import Streams

OUTLIER = 33  # a default run records t = 1, 10, 20, 30, 40
RECORDED = (1, 10, 20, 30, 40)
FILTERS = ("bootstrap_filter", "auxiliary_filter", "guided_filter")
SMOOTHERS = ("ffbs", "ffbsi", "two_filter")


def filter_with_records(name, problem):
    """The posterior, and the effective sample sizes at the recorded times."""
    keys = {"particles": 200}
    if name in SMOOTHERS:
        keys = {"filter": component("inference", "bootstrap_filter", **keys)}
    inference = component("inference", name, **keys)
    model = component("model", "linear_gaussian_ssm").build(problem, None)
    rng = Streams(3)
    state = inference.init(model, problem, rng)
    recorded = []
    for t, batch in problem.batches("observation", rng, 0, problem.length("observation")):
        state, info = inference.step(state, batch, rng)
        if t in RECORDED:
            recorded += info["ess"].tolist()
    return inference.posterior(state), recorded


@pytest.mark.parametrize("name", [*FILTERS, *SMOOTHERS])
def test_weight_check_reads_unrecorded_times(name):
    problem = sequence(system(), 40, 2)
    problem.observations[:, OUTLIER - 1] += 1e5
    posterior, recorded = filter_with_records(name, problem)
    assert min(recorded) > limits.LEAST_ESS  # the recorded times do not include it
    check = posterior.checks(SimpleNamespace(problem=problem))[0]
    assert check.passed is False
    assert f"first t = {OUTLIER}" in check.detail


def test_outlier_ruins_particle_evidence():
    problem = sequence(system(), 40, 2)
    problem.observations[:, OUTLIER - 1] += 1e5
    model = component("model", "linear_gaussian_ssm").build(problem, None)
    exact = run(component("inference", "kalman"), model, problem, Streams(0))
    posterior, _ = filter_with_records("bootstrap_filter", problem)
    error = (posterior.log_normaliser - exact.log_normaliser).abs()
    assert torch.isfinite(error).all()
    assert error.min() > 1e8
