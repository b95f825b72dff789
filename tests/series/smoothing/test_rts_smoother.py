"""The Rauch-Tung-Striebel smoothers compared with the dense joint posterior."""

import copy

import pytest
import torch
from support.runs.configured import component, load
from support.series.small_sequences import dense_posterior, gappy, run, sequence, system
from support.small.small_problems import train
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams

T = 7
DX = 3


@pytest.mark.parametrize("name", ["rts_smoother", "extended_rts_smoother"])
@pytest.mark.parametrize("apart", [False, True])
def test_smoother_equals_the_conditional_gaussian(name, apart):
    problem = gappy(T, 2, apart)
    posterior = run(
        component("inference", name), LinearGaussianModule(problem.system), problem, Streams(0)
    )
    for r in range(2):
        mean, covariance = dense_posterior(problem, r)
        variance = covariance.diagonal().view(T, DX)
        assert_close(posterior.mean[r], mean, rtol=1e-9, atol=1e-10)
        assert_close(posterior.variance[r], variance, rtol=1e-9, atol=1e-10)
        assert_close(posterior.upper[r], mean + 1.6448536 * variance.sqrt(), rtol=1e-6, atol=1e-6)


def test_theorem_8_2_holds_literally():
    s = system()
    problem = sequence(s, T, 1)
    smoother = component("inference", "rts_smoother")
    state, _ = train(smoother, LinearGaussianModule(s), problem, T)
    posterior = smoother.posterior(state)
    m = state.filtered.current_posterior().mean[0]
    P = state.covariances.rows
    mean = m[-1]
    covariance = P[-1]
    for k in range(T - 2, -1, -1):
        prior_m = s.A @ m[k]
        prior_P = s.A @ P[k] @ s.A.T + s.Q
        G = P[k] @ s.A.T @ torch.linalg.inv(prior_P)
        mean = m[k] + G @ (mean - prior_m)
        covariance = P[k] + G @ (covariance - prior_P) @ G.T
        assert_close(posterior.mean[0, k], mean, rtol=1e-10, atol=1e-12)
        assert_close(posterior.variance[0, k], covariance.diagonal(), rtol=1e-10, atol=1e-12)


def test_intermediate_posterior_uses_observations_so_far():
    problem = sequence(system(), T, 1)
    smoother = component("inference", "rts_smoother")
    state = smoother.init(LinearGaussianModule(problem.system), problem, Streams(0))
    assert problem.score(smoother.posterior(state), Streams(0)) == {}
    for t, batch in problem.batches("observation", Streams(0), 0, 4):
        state, _ = smoother.step(state, batch, Streams(0))
        assert smoother.posterior(state).mean.shape == (1, t, DX)
    begun = sequence(problem.system, T, 1)
    begun.observations = begun.observations[:, :4]
    assert_close(smoother.posterior(state).mean[0], dense_posterior(begun, 0)[0])


def test_repeated_smoothing_is_bit_identical():
    problem = gappy(T, 2, True)
    model = LinearGaussianModule(system())
    smoother = component("inference", "rts_smoother")
    state = smoother.init(model, problem, Streams(0))
    for t, batch in problem.batches("observation", Streams(0), 0, T):
        state, _ = smoother.step(state, batch, Streams(0))
        if t == 3:
            smoother.posterior(state)
            state = copy.deepcopy(state)  # as restored from a checkpoint
            state.gain = None
    whole = run(smoother, model, problem, Streams(0))
    for name in ("mean", "variance", "lower", "upper"):
        assert torch.equal(vars(smoother.posterior(state))[name], vars(whole)[name])


def test_smoothing_reduces_the_error_of_filtering():
    problem, rng = load("wiener_velocity", replicates=5, n_steps=80)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    nmse = {
        name: problem.score(run(component("inference", name), model, problem, rng), rng)["nmse"]
        for name in ("kalman", "rts_smoother")
    }
    assert (nmse["rts_smoother"] < 0.8 * nmse["kalman"]).all()


def test_extended_smoother_equals_algorithm_9_1():
    problem, rng = load("nonlinear_growth", replicates=2, n_steps=12)
    model = component("model", "nonlinear_growth").build(problem, rng)
    smoother = component("inference", "extended_rts_smoother")
    state, _ = train(smoother, model, problem, 12)
    posterior = smoother.posterior(state)
    m = state.filtered.current_posterior().mean[0, :, 0]
    P = state.covariances.rows[:, 0, 0, 0]
    mean = m[-1]
    variance = P[-1]
    for k in range(10, -1, -1):
        F = 0.5 + 25 * (1 - m[k] ** 2) / (1 + m[k] ** 2) ** 2  # of x/2 + 25x/(1 + x²)
        prior = F * P[k] * F + model.Q[0, 0]
        G = P[k] * F / prior
        next_mean = model.transition_mean(m[k].view(1, 1, 1), k + 2)[0, 0, 0]
        mean = m[k] + G * (mean - next_mean)
        variance = P[k] + G * (variance - prior) * G
        assert_close(posterior.mean[0, k, 0], mean)
        assert_close(posterior.variance[0, k, 0], variance)
