"""random_walk_mh and mala find exact moments and leave distributions invariant; variants with a
mistake do not."""

import pytest
from support.targets.exact_targets import (
    TARGETS,
    TwoModes,
    check_edges,
    check_warm_up,
    mutate,
    without_jacobian,
)
from support.targets.known_targets import moment_z, sample_target
from support.targets.rank_test import NormalGamma, rank_p, two_sample_p

from components.inference.mcmc import adapted_metropolis

# number of steps, and the unmodified kernel's step size
STEPS = {"random_walk_mh": 1300, "mala": 1000}
FIXED = {
    "random_walk_mh": {"warmup": 0, "step_size": 1.5},
    "mala": {"warmup": 0, "step_size": 0.15},
}


def largest_z(name, model):
    return moment_z(sample_target(name, model, STEPS[name], chains=200, warmup=400), model)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("target", TARGETS)
def test_moments_match_target(name, target):
    assert largest_z(name, TARGETS[target]()) < 4


@pytest.mark.parametrize("name", STEPS)
def test_missing_jacobian_is_detected(name):
    assert largest_z(name, without_jacobian()) > 4


@pytest.mark.parametrize("name", STEPS)
def test_kernels_leave_posteriors_invariant(name):
    assert rank_p(name, NormalGamma(), replications=10_000, **FIXED[name]) > 1e-3
    assert two_sample_p(name, NormalGamma(), **FIXED[name]) > 1e-3


PLAIN = {"adapt_step_size": False, "covariance": "identity", "chains": 200}
RATIOS = [
    ("random_walk_mh", "half the log ratio", 1300, {"warmup": 400}),
    ("random_walk_mh", "everything accepted", 1300, {"warmup": 400}),
    ("mala", "no correction", 800, {"warmup": 200, "step_size": 0.4}),
    ("mala", "correction upside down", 800, {"warmup": 200, "step_size": 0.4}),
    ("mala", "everything accepted", 800, {"warmup": 200, "step_size": 0.4}),
]


@pytest.mark.parametrize(("name", "mutant", "steps", "keys"), RATIOS)
def test_wrong_acceptance_ratio_is_detected(name, mutant, steps, keys, monkeypatch):
    mutate(monkeypatch, adapted_metropolis, mutant)
    model = TwoModes()
    assert moment_z(sample_target(name, model, steps, **PLAIN | keys), model) > 4
    assert rank_p(name, NormalGamma(), replications=4000, **FIXED[name]) < 1e-6


def test_density_without_jacobian_is_detected():
    class WithoutJacobian(NormalGamma):
        def log_prior(self, theta):
            return super().log_prior(theta) - theta[:, 1]

    keys = FIXED["random_walk_mh"]
    assert rank_p("random_walk_mh", WithoutJacobian(), **keys) < 1e-6
    assert two_sample_p("random_walk_mh", WithoutJacobian(), steps=20, **keys) < 1e-6


@pytest.mark.parametrize(
    ("name", "warmup", "steps", "acceptance"),
    [("random_walk_mh", 1500, 1700, 0.234), ("mala", 800, 1100, 0.574)],
)
def test_warm_up_adapts_and_then_fixes_proposal(name, warmup, steps, acceptance):
    draws = check_warm_up(name, warmup, steps, acceptance)
    assert draws.stats.keys() == {"lp", "acceptance_rate", "step_size"}
    # warm-up draws are not stored
    assert all(values.shape == (16, steps - warmup) for values in draws.stats.values())


@pytest.mark.parametrize(("name", "step_size"), [("random_walk_mh", 5.0), ("mala", 2.0)])
def test_zero_density_is_rejected_and_nan_is_an_error(name, step_size):
    check_edges(name, step_size)
