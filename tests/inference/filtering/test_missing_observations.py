"""Missing observations: filters continue without them, scores omit them, and both count them."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, load
from support.series import small_sequences
from support.series.small_sequences import run, run_filter, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams

T = 6


def gappy(apart):
    """A sequence with some missing observations, equal in all replicates or not; one missing
    coordinate suffices."""
    problem = small_sequences.gappy(T, 3, apart)
    if apart:
        problem.observations[2, 1:3, 0] = math.nan
    return problem


def condition_gaussian(problem, r):
    """E and Var of each x_t given the observations y_s, s ≤ t, of replicate r, E y_t given s < t,
    and their log density, from the joint Gaussian: x_t = Aᵗ x_0 + Σ_v A^{t−v} w_v."""
    s = problem.system
    dx = 3
    dy = 2
    powers = [torch.linalg.matrix_power(s.A, t) for t in range(T + 1)]
    zero = torch.zeros_like(s.A)
    F = torch.cat(
        [
            torch.cat([powers[t - v] if v <= t else zero for v in range(T + 1)], 1)
            for t in range(1, T + 1)
        ]
    )
    spread = F @ torch.block_diag(s.P0, *[s.Q] * T) @ F.T
    mean = F[:, :dx] @ s.m0
    H = torch.block_diag(*[s.H] * T)
    cov_y = H @ spread @ H.T + torch.block_diag(*[s.Sigma] * T)
    cross = spread @ H.T
    y = problem.observations[r].flatten()
    present = (~problem.missing[r]).repeat_interleave(dy)

    def condition(t, n):
        """Mean and variance of x_t, given the first n observations."""
        rows = slice(t * dx, (t + 1) * dx)
        selected = present & (torch.arange(T * dy) < n * dy)
        gain = torch.linalg.solve(cov_y[selected][:, selected], cross[rows][:, selected].T).T
        variance = spread[rows, rows] - gain @ cross[rows][:, selected].T
        return mean[rows] + gain @ (y - H @ mean)[selected], variance.diagonal()

    means, variances = zip(*[condition(t, t + 1) for t in range(T)], strict=True)
    predicted = torch.stack([condition(t, t)[0] for t in range(T)]) @ s.H.T
    law = torch.distributions.MultivariateNormal((H @ mean)[present], cov_y[present][:, present])
    return torch.stack(means), torch.stack(variances), predicted, law.log_prob(y[present])


@pytest.mark.parametrize("apart", [False, True])
def test_kalman_matches_conditional_joint_gaussian(apart):
    problem = gappy(apart)
    got = run_filter("kalman", problem)
    for r in range(3):
        expected = condition_gaussian(problem, r)
        actual = got.mean[r], got.variance[r], got.predicted[r], got.log_normaliser[r]
        assert_close(actual, expected, rtol=1e-9, atol=1e-9)
        upper = expected[0] + 1.6448536 * expected[1].sqrt()
        assert_close(got.upper[r], upper, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["bootstrap_filter", "beta_bootstrap_filter"])
def test_particle_filters_agree_with_kalman(name):
    problem = sequence(system(), T, 400)
    problem.observations[:, 2] = math.nan
    problem.observations[::2, 4] = math.nan  # half of the replicates lack one more observation
    inference = component(
        "inference", name, particles=400, **({"beta": 0.0} if name.startswith("beta") else {})
    )
    model = LinearGaussianModule(problem.system)
    actual, exact = (
        run(i, model, problem, Streams(3)) for i in (inference, component("inference", "kalman"))
    )
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert z_score((actual.log_normaliser - exact.log_normaliser)[half].exp(), 1.0).abs() < 4
        assert z_score((actual.mean - exact.mean)[half, -1], 0.0).abs().max() < 4.5


def test_weighing_by_imputed_observations_is_detected():
    """The broken variant imputes a missing observation by its prediction and uses it."""
    problem = sequence(system(), T, 400)
    exact_problem = replace(problem, observations=problem.observations.clone())
    exact_problem.observations[:, 2] = math.nan
    model = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", exact_problem, model)
    problem.observations[:, 2] = exact.predicted[:, 2]
    actual = run_filter("bootstrap_filter", problem, seed=3, particles=400)
    assert z_score((actual.log_normaliser - exact.log_normaliser).exp(), 1.0).abs() > 10


def test_no_observations_give_the_prior():
    problem = sequence(system(), T, 2)
    problem.observations[:] = math.nan
    actual = run_filter("kalman", problem)
    assert torch.equal(actual.log_normaliser, torch.zeros(2, dtype=F64))
    s = problem.system
    P = s.A @ s.P0 @ s.A.T + s.Q
    assert_close(actual.variance[0, 0], P.diagonal())


def test_model_is_not_evaluated_at_missing_observations():
    class Picky(LinearGaussianModule):
        def log_observation(self, y, x, t):
            assert not y.isnan().any()
            return super().log_observation(y, x, t)

    problem = gappy(apart=True)
    actual = run_filter("bootstrap_filter", problem, Picky(problem.system), particles=30)
    assert torch.isfinite(actual.mean).all()


def test_scores_exclude_and_count_missing_observations():
    problem, rng = load("local_level", replicates=4, n_steps=40, missing=0.3)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    actual = run(component("inference", "kalman"), model, problem, rng)
    scores = problem.score(actual, rng)
    for r in range(4):
        present = ~problem.missing[r]
        errors = (actual.predicted[r, present] - problem.observations[r, present]).abs()
        assert float(scores["medae"][r]) == pytest.approx(float(errors.quantile(0.5)))
        assert int(scores["missing"][r]) == (~present).sum()
    total = int(problem.missing.sum())
    assert total > 0
    assert problem.describe()["missing"] == f"{total:,} of 160 observations"
    assert {"nmse", "coverage90", "medae"} <= set(scores)
    assert set(problem.draw(actual, rng)) == {"states", "coverage"}


def test_unknown_states_leave_only_prediction_scores():
    problem, rng = load("local_level", replicates=2, n_steps=20)
    unknown = replace(problem, states=None)
    model = component("model", "linear_gaussian_ssm").build(unknown, rng)
    actual = run(component("inference", "kalman"), model, unknown, rng)
    scores = unknown.score(actual, rng)
    assert set(scores) == {"medae", "nmse", "log_evidence", "missing"}
    assert torch.equal(scores["log_evidence"], actual.log_normaliser)
    truth = problem.means.expand(2, -1, -1)
    for r in range(2):  # the noise has mean zero, so that predictions estimate the signal
        apart = sum(float(m - y) ** 2 for m, y in zip(truth[r], actual.predicted[r], strict=True))
        assert float(scores["nmse"][r]) == pytest.approx(
            apart / sum(float(m) ** 2 for m in truth[r])
        )
    weighed = replace(actual, evidence=False)  # a normaliser other than the evidence is not a score
    assert "log_evidence" not in unknown.score(weighed, rng)
    assert unknown.describe()["truth"] == "not known"
    assert set(unknown.draw(actual, rng)) == {"states"}


def test_missing_observations_are_not_corrupted():
    problem, rng = load("local_level", replicates=3, n_steps=60, missing=0.3)
    attacked = problem.attack(
        component("attacker", "gaussian_contamination", probability=0.5, sd=9.0), rng
    )
    assert attacked.is_corrupted.any()
    assert not (attacked.is_corrupted & attacked.missing).any()
    assert torch.equal(attacked.missing, problem.missing)
