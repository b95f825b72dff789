"""Matérn processes as state-space models: the printed matrices, the kernel, the exact Gaussian
process."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.series.small_sequences import run
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.maths.matern_state_space import transition
from runner.execution.rng import Streams

SMOOTH = (0.5, 1.5, 2.5)


def kernel(tau, smoothness, lengthscale, variance):
    """σ² times the Matérn correlation, Rasmussen and Williams (2006), eqs. (4.17) and (4.18); tau
    [T] -> [T, T]."""
    r = (tau[:, None] - tau[None, :]).abs() * math.sqrt(2 * smoothness) / lengthscale
    polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[smoothness]
    return variance * polynomial * torch.exp(-r)


def literal(ell, s2):
    """F and P∞ of D.3.6, −κ in both corners."""
    lam = math.sqrt(5) / ell
    kappa = s2 * lam**2 / 3
    F = double([[0, 1, 0], [0, 0, 1], [-(lam**3), -3 * lam**2, -3 * lam]])
    P = double([[s2, 0, -kappa], [0, kappa, 0], [-kappa, 0, s2 * lam**4]])
    return F, P


def test_matrices_equal_those_of_d_3_6():
    F, P = literal(0.03, 32.0)
    A, Q, stationary = transition(2.5, 0.03, 32.0, 0.005)
    scale = P.diagonal().sqrt()
    expected = torch.linalg.matrix_exp(0.005 * F)
    assert_close(
        A * scale / scale[:, None], expected * scale / scale[:, None], rtol=1e-11, atol=1e-12
    )
    for got, printed in ((stationary, P), (Q, P - expected @ P @ expected.T)):
        assert_close(got / scale.outer(scale), printed / scale.outer(scale), rtol=0, atol=1e-12)


@pytest.mark.parametrize("smoothness", SMOOTH)
@pytest.mark.parametrize("step", [1e-7, 0.004, 0.02, 0.5])
def test_process_noise_keeps_stationarity_and_is_factorised(smoothness, step):
    A, Q, P = transition(smoothness, 0.03, 2.0, step)
    scale = P.diagonal().sqrt()
    assert_close((A @ P @ A.T + Q) / scale.outer(scale), P / scale.outer(scale), rtol=0, atol=1e-13)
    assert not torch.linalg.cholesky_ex(Q).info
    assert not torch.linalg.cholesky_ex(Q.float()).info


def test_two_short_steps_equal_a_long_one():
    A, Q, _ = transition(2.5, 0.03, 2.0, 0.005)  # the integral: λ Δτ < 1
    long, wide, _ = transition(2.5, 0.03, 2.0, 0.02)  # the difference
    for _ in range(2):
        A, Q = A @ A, A @ Q @ A.T + Q
    assert_close(A, long, rtol=1e-10, atol=0)
    assert_close(Q, wide, rtol=1e-10, atol=0)


@pytest.mark.parametrize("smoothness", SMOOTH)
def test_covariance_between_times_equals_the_kernel(smoothness):
    A, _, P = transition(smoothness, 0.3, 1.7, 0.1)
    K = kernel(torch.arange(8, dtype=F64) * 0.1, smoothness, 0.3, 1.7)
    got = torch.stack([(torch.linalg.matrix_power(A, k) @ P)[0, 0] for k in range(8)])
    assert_close(got, K[:, 0], rtol=1e-12, atol=1e-14)


def exact(problem, keys, r):
    """Log evidence of the observations of replicate r, and mean and variance of f at all times, by
    the dense Gaussian process."""
    y = problem.observations[r, :, 0]
    is_observed = ~problem.missing[r]
    tau = torch.arange(1, len(y) + 1, dtype=F64) * keys["step"]
    K = kernel(tau, keys["smoothness"], keys["lengthscale"], keys["variance"])
    noisy = K[is_observed][:, is_observed] + keys["noise_variance"] * torch.eye(
        int(is_observed.sum()), dtype=F64
    )
    gain = torch.linalg.solve(noisy, K[is_observed]).T
    law = torch.distributions.MultivariateNormal(torch.zeros(len(noisy), dtype=F64), noisy)
    return (
        law.log_prob(y[is_observed]),
        gain @ y[is_observed],
        (K - gain @ K[is_observed]).diagonal(),
    )


def gp(smoothness, missing=0.0):
    keys = {"lengthscale": 0.03, "variance": 32.0, "noise_variance": 1.0, "step": 0.005}
    keys["smoothness"] = smoothness
    problem, rng = load("matern_sde", seed=4, replicates=2, n_steps=60, missing=missing, **keys)
    return problem, component("model", "matern_sde", **keys).build(problem, rng), keys


@pytest.mark.parametrize("smoothness", SMOOTH)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_filter_and_smoother_equal_the_exact_gaussian_process(smoothness, missing):
    """The evidence and the last time of the filter, and every time of the smoother."""
    problem, model, keys = gp(smoothness, missing)
    laws = zip(*(exact(problem, keys, r) for r in (0, 1)), strict=True)
    log_evidence, mean, variance = (torch.stack(parts) for parts in laws)
    filtered, smoothed = (
        run(component("inference", name), model, problem, Streams(0))
        for name in ("kalman", "rts_smoother")
    )
    assert_close(filtered.log_normaliser, log_evidence, rtol=1e-10, atol=1e-8)
    for estimate, times in ((filtered, slice(-1, None)), (smoothed, slice(None))):
        ours = estimate.mean[:, times, 0], estimate.variance[:, times, 0]
        assert_close(ours, (mean[:, times], variance[:, times]), rtol=1e-8, atol=1e-8)


def test_simulated_process_has_the_covariance_of_the_kernel():
    # [S, T]
    f = torch.stack([load("matern_sde", seed, n_steps=9)[0].states[0, :, 0] for seed in range(400)])
    K = kernel(torch.arange(9, dtype=F64) * 0.005, 2.5, 0.03, 32.0)
    assert z_score(f.unsqueeze(2) * f.unsqueeze(1), K).abs().max() < 4.5


def test_only_named_coordinates_are_scored():
    """A local level has one coordinate; the first of three coordinates of the Matérn-5/2 state is
    compared with the truth."""
    problem, rng = load("local_level", replicates=2, n_steps=30)
    model = component("model", "matern_sde", lengthscale=0.1, variance=4.0).build(problem, rng)
    posterior = run(component("inference", "kalman"), model, problem, rng)
    assert posterior.mean.shape == (2, 30, 3)
    scores = problem.score(posterior, rng)
    squares = (problem.states - posterior.mean[..., :1]).square().sum((1, 2))
    assert_close(scores["nmse"], squares / problem.states.square().sum((1, 2)))
    assert set(problem.draw(posterior, rng)) == {"states", "coverage"}
