"""Step size relative to curvature: its value, and the limit beyond which a path oscillates with
growing amplitude."""

import contextlib

import pytest
import torch
from support.runs.configured import component, double
from support.targets.known_targets import F64, GaussianTarget, run_chains

from components.errors import NumericalError
from components.inference.step_response import largest_response
from runner.execution.execute import run

CURVATURE = 25.0  # in the stiffest direction
# with the step size at which A times that curvature is the limit, for particles without interaction
METHODS = {
    "sgld": ({}, 2 / CURVATURE),
    "sgd_momentum": ({"resample_every": 10_000}, 2 / CURVATURE**0.5),
    "sghmc": ({"friction": 1.0}, None),
    "sgld_r": ({"repulsion_until": 0}, 4 * 2 / CURVATURE),
    "sgdm_r": ({"repulsion_until": 0, "friction": 0.0}, 4 * 2 / CURVATURE**0.5),
    "adam_noise": ({"adapt": "always", "beta2": 0.9}, None),
    "psgld": ({"adapt": "always"}, None),
    "adam_nr": ({"adapt": "always"}, None),
    "svgd": ({"scaling": "none"}, None),
}


def target():
    return GaussianTarget(torch.zeros(3, dtype=F64), torch.diag(double([1.0, 0.2, 1 / CURVATURE])))


def walk_path(name, steps, **keys):
    settings = (
        {"chains": 4, "burn_in": 0, "thinning": 1, "schedule": "constant"} | METHODS[name][0] | keys
    )
    method = component("inference", name, **settings)
    return method, run_chains(method, target(), steps)[0]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_reports_its_gradient_response(name):
    method, state = walk_path(name, 3, step_size=1e-3)
    response = method.response(state)
    twice = walk_path(name, 3, step_size=2e-3)[0].response(state)
    actual = largest_response(target(), state.theta, None, response)
    assert 0 < actual < response.limit
    assert actual < largest_response(target(), state.theta, None, twice)


@pytest.mark.parametrize("name", [name for name, (_, limit) in METHODS.items() if limit])
def test_path_diverges_beyond_the_limit(name):
    _, limit = METHODS[name]
    method, state = walk_path(name, 300, step_size=0.9 * limit)
    response = method.response(state)
    assert largest_response(target(), state.theta, None, response) < response.limit
    assert state.theta.abs().max() < 100
    method, state = walk_path(name, 3, step_size=1.1 * limit)
    response = method.response(state)
    assert largest_response(target(), state.theta, None, response) > response.limit
    with contextlib.suppress(NumericalError):
        assert walk_path(name, 300, step_size=1.1 * limit)[1].theta.abs().max() > 1e6


def test_sgld_response_is_step_times_curvature():
    method, state = walk_path("sgld", 5, step_size=0.01)
    assert largest_response(target(), state.theta, None, method.response(state)) == pytest.approx(
        0.25, rel=1e-3
    )


class Saddle(GaussianTarget):
    """log p = (50 x² − 2 y²)/2: the positive curvature exceeds the negative one."""

    def log_prior(self, theta):
        return 25 * theta[:, 0] ** 2 - theta[:, 1] ** 2


def test_convex_direction_is_not_counted_as_curvature():
    method, state = walk_path("sgld", 1, step_size=0.01)
    saddle = Saddle(torch.zeros(2, dtype=F64), torch.eye(2, dtype=F64))
    actual = largest_response(saddle, torch.ones(4, 2, dtype=F64), None, method.response(state))
    assert actual == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    ("schedule", "t", "largest"),
    [
        ({"schedule": "constant"}, 30, 0.1),
        # after 20 steps
        ({"schedule": "polynomial", "decay": 1.0, "decay_scale": 10.0}, 30, 0.1 / 3),
        ({"schedule": "cyclical", "cycle_length": 40}, 30, 0.05),  # half of the initial step size
        ({"schedule": "cyclical", "cycle_length": 25}, 30, 0.1),  # a new cycle has begun
        # no draws are stored yet: all steps count
        ({"schedule": "polynomial", "decay": 1.0, "decay_scale": 10.0}, 10, 0.1),
    ],
)
def test_largest_step_is_counted_after_burn_in(schedule, t, largest):
    assert component("inference", "sgld", step_size=0.1, burn_in=20, **schedule).largest_step(
        t
    ) == pytest.approx(largest)


def overlap(make_job, *overrides):
    """The check of the distance between a fitted q and its target, in the record of a run."""
    done, _ = run(
        make_job("dataset=gaussian", "dataset.dim=10", "model=target_density", *overrides)
    )
    (check,) = (
        c for c in done.record.facts["checks"]["0"] if "close enough to weight" in c["check"]
    )
    return check["passed"], check["detail"]


@pytest.mark.parametrize("method", ["gaussian_vi", "bbvi"])
def test_fit_is_judged_by_tail_of_weights(make_job, method):
    keys = (f"inference={method}", "inference.draws=1000", "inference.lr=0.05")
    near, detail = overlap(make_job, "steps=1500", *keys)
    assert near, detail
    # still too narrow
    far, detail = overlap(make_job, "steps=1", "inference.initial_std=0.1", *keys)
    assert not far, detail
