import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.series.small_sequences import gappy, run, run_filter, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule


def assert_literal(model, problem):
    """Assert that each step equals the recursion with explicit inverses, without missing
    observations."""
    actual = run_filter("kalman", problem, model)
    s = problem.system
    for r, y in enumerate(problem.observations):
        m = s.m0
        P = s.P0
        for t, value in enumerate(y):
            m = s.A @ m
            P = s.A @ P @ s.A.T + s.Q
            if not value.isnan().any():
                K = P @ s.H.T @ torch.linalg.inv(s.H @ P @ s.H.T + s.Sigma)
                m = m + K @ (value - s.H @ m)
                P = P - K @ s.H @ P
            assert_close(actual.mean[r, t], m, rtol=1e-10, atol=1e-9)
            assert_close(actual.variance[r, t], P.diagonal(), rtol=1e-10, atol=1e-12)
    return actual


@pytest.mark.parametrize("apart", [False, True])
def test_steps_match_equations_with_missing_observations(apart):
    problem = gappy(7, 3, apart)
    assert_literal(LinearGaussianModule(problem.system), problem)


def test_settled_covariances_match_recursion():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=300)
    problem.observations[:, 220] = torch.nan
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    variance = assert_literal(model, problem).variance
    assert torch.equal(variance[:, 219], variance[:, 218])
    assert (variance[:, 220] > variance[:, 219]).all()


def test_diverging_covariance_matches_recursion():
    s = system()
    A = torch.eye(3, dtype=F64)
    # the third is an unobserved random walk
    H = double([[1.0, 0, 0], [0, 1.0, 0]])
    drifting = type(s)(A, torch.diag(s.Q.diagonal()), H, s.Sigma, s.m0, torch.diag(s.P0.diagonal()))
    actual = run_filter("kalman", sequence(drifting, 150, 1), LinearGaussianModule(drifting))
    expected = s.P0[2, 2] + s.Q[2, 2] * torch.arange(1, 151, dtype=F64)
    assert_close(actual.variance[0, :, 2], expected)


def test_clean_errors_have_reported_variance():
    kalman = component("inference", "kalman")
    model = component("model", "linear_gaussian_ssm")
    squares = []
    covered = []
    for seed in range(150):
        # The simulator starts at x_0 itself, so only a prior at x_0 is calibrated.
        problem, rng = load("wiener_velocity", seed, n_steps=15, prior_sd=1e-3)
        actual = run(kalman, model.build(problem, rng), problem, rng)
        error = actual.mean[0, -1] - problem.states[0, -1]
        squares.append(error.square() / actual.variance[0, -1])
        covered.append(
            ((actual.lower <= problem.states) & (problem.states <= actual.upper)).double().mean()
        )
    assert z_score(torch.stack(squares), 1.0).abs().max() < 4
    assert abs(z_score(torch.stack(covered), 0.9)) < 4


def test_scores_match_formulas():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=40)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    actual = run(component("inference", "kalman"), model, problem, rng)
    scores = problem.score(actual, rng)
    x = problem.states  # [1, 40, 4]
    # eqs. (D.6), (D.7), (D.8)
    nmse = (x - actual.mean).square().sum(1) / x.square().sum(1)
    inside = (actual.lower <= x) & (x <= actual.upper)
    absolute = (actual.predicted - problem.observations).abs()
    literal = {
        "nmse": nmse.mean(1),
        "nmse_median": nmse.quantile(0.5, dim=1),
        "nmse/velocity 2": nmse[:, 3],
        "coverage90": inside.double().mean((1, 2)),
        "medae": absolute.quantile(0.5, dim=1).mean(1),
    }
    for name, value in literal.items():
        assert_close(scores[name], value, rtol=1e-10, atol=0, msg=name)
