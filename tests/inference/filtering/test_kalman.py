from __future__ import annotations

import math

import torch
from support.runs.configured import component, load
from support.series.small_sequences import run, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import LinearGaussianSystem
from runner.execution.rng import Streams


def joint(s: LinearGaussianSystem, length: int):
    """Mean and covariance of (x_1, …, x_T, y_1, …, y_T), built block by block from eqs. (6.16),
    (6.17)."""
    dx, dy = len(s.m0), len(s.Sigma)
    mean_x, cov_x = (
        torch.zeros(length * dx, dtype=torch.float64),
        torch.zeros(length * dx, length * dx, dtype=torch.float64),
    )
    m, P = s.m0, s.P0
    for t in range(length):
        m, P = s.A @ m, s.A @ P @ s.A.T + s.Q
        here = slice(t * dx, (t + 1) * dx)
        mean_x[here], cov_x[here, here] = m, P
        ahead = P
        for later in range(t + 1, length):
            ahead = s.A @ ahead  # Cov(x_later, x_t)
            there = slice(later * dx, (later + 1) * dx)
            cov_x[there, here], cov_x[here, there] = ahead, ahead.T
    H = torch.block_diag(*[s.H] * length)
    noise = torch.block_diag(*[s.Sigma] * length)
    assert H.shape == (length * dy, length * dx)
    return mean_x, cov_x, H @ mean_x, H @ cov_x @ H.T + noise, cov_x @ H.T


def test_filter_is_the_conditioned_joint_gaussian():
    s, T = system(), 6
    dx, dy = 3, 2
    problem = sequence(s, T, replicates=2)
    got = run(component("inference", "kalman"), LinearGaussianModule(s), problem, Streams(0))
    mean_x, cov_x, mean_y, cov_y, cross = joint(s, T)
    y = problem.observations[0].flatten()
    for t in range(T):
        seen, state = slice(0, (t + 1) * dy), slice(t * dx, (t + 1) * dx)
        gain = torch.linalg.solve(cov_y[seen, seen], cross[state, seen].T).T
        mean = mean_x[state] + gain @ (y[seen] - mean_y[seen])
        variance = (cov_x[state, state] - gain @ cross[state, seen].T).diagonal()
        assert_close(got.mean[1, t], mean, rtol=1e-9, atol=1e-10)
        assert_close(got.variance[0, t], variance, rtol=1e-9, atol=1e-10)
        assert_close(got.upper[0, t], mean + 1.6448536 * variance.sqrt(), rtol=1e-6, atol=1e-6)
        past = slice(0, t * dy)
        before = mean_x[state] + cross[state, past] @ torch.linalg.solve(
            cov_y[past, past], y[past] - mean_y[past]
        )
        assert_close(got.predicted[0, t], s.H @ before, rtol=1e-9, atol=1e-10)
    evidence = torch.distributions.MultivariateNormal(mean_y, cov_y).log_prob(y)
    assert_close(got.log_normaliser, evidence.expand(2), rtol=1e-10, atol=1e-9)


def test_errors_on_clean_data_have_the_variance_the_filter_says():
    kalman, model = component("inference", "kalman"), component("model", "linear_gaussian_ssm")
    squares, covered = [], []
    for seed in range(150):
        # The simulator starts at x_0 itself, so only a prior that says so is calibrated.
        problem, rng = load("wiener_velocity", seed, n_steps=15, prior_sd=1e-3)
        got = run(kalman, model.build(problem, rng), problem, rng)
        error = got.mean[0, -1] - problem.states[0, -1]
        squares.append(error.square() / got.variance[0, -1])
        covered.append(
            ((got.lower <= problem.states) & (problem.states <= got.upper)).double().mean()
        )
    assert z_score(torch.stack(squares), 1.0).abs().max() < 4
    assert abs(z_score(torch.stack(covered), 0.9)) < 4


def test_contamination_breaks_its_calibration():
    problem, rng = load("wiener_velocity", replicates=20, n_steps=200)
    attacked = problem.attack(component("attacker", "gaussian_contamination"), rng)
    kalman, model = component("inference", "kalman"), component("model", "linear_gaussian_ssm")
    clean = problem.score(run(kalman, model.build(problem, rng), problem, rng), rng)
    hit = attacked.score(run(kalman, model.build(attacked, rng), attacked, rng), rng)
    assert hit["nmse"].median() > 30 * clean["nmse"].median()
    assert clean["coverage90"].mean() > 0.8 > 0.5 > hit["coverage90"].mean()


def test_scores_are_the_literal_formulas():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=40)
    got = run(
        component("inference", "kalman"),
        component("model", "linear_gaussian_ssm").build(problem, rng),
        problem,
        rng,
    )
    scores = problem.score(got, rng)
    for r in range(2):
        nmse, inside, absolute = [], [], [[], []]
        for j in range(4):
            above = below = hits = 0.0
            for t in range(40):  # eqs. (D.6), (D.7)
                x = float(problem.states[0, t, j])
                above += (x - float(got.mean[r, t, j])) ** 2
                below += x**2
                hits += float(got.lower[r, t, j]) <= x <= float(got.upper[r, t, j])
            nmse.append(above / below)
            inside.append(hits / 40)
        for j in range(2):  # eq. (D.8)
            absolute[j] = sorted(
                abs(float(got.predicted[r, t, j] - problem.observations[r, t, j]))
                for t in range(40)
            )
        medae = [(a[19] + a[20]) / 2 for a in absolute]
        assert math.isclose(scores["nmse"][r], sum(nmse) / 4, rel_tol=1e-10)
        assert math.isclose(scores["nmse_median"][r], sum(sorted(nmse)[1:3]) / 2, rel_tol=1e-10)
        assert math.isclose(scores["nmse/velocity 2"][r], nmse[3], rel_tol=1e-10)
        assert math.isclose(scores["coverage90"][r], sum(inside) / 4, rel_tol=1e-10)
        assert math.isclose(scores["medae"][r], sum(medae) / 2, rel_tol=1e-10)
