"""Filtering of whole series: the numbers of the steps."""

import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.series.small_sequences import gappy, run, run_filter, sequence, system
from torch.testing import assert_close

from components.series.gaussian_filtering.kalman_series import filter_series
from components.series.models.linear_gaussian_ssm import LinearGaussianModule


def compared(model, problem):
    steps = run_filter("kalman", problem, model)
    whole = filter_series(model, problem.observations, problem.missing)
    assert_close(whole.mean.transpose(0, 1), steps.mean, rtol=1e-10, atol=1e-9)
    variance = whole.P.diagonal(dim1=-2, dim2=-1)
    variance = variance if variance.dim() == 3 else variance.unsqueeze(1).expand_as(whole.mean)
    assert_close(variance.transpose(0, 1), steps.variance, rtol=1e-10, atol=1e-12)
    assert_close(whole.log_evidence, steps.log_normaliser, rtol=1e-10, atol=1e-8)
    assert_close(whole.predicted.transpose(0, 1), steps.predicted, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("apart", [False, True])
def test_it_is_one_step_after_the_other(apart):
    problem = gappy(7, 3, apart)
    compared(LinearGaussianModule(problem.system), problem)


def test_covariances_that_settle_are_those_of_the_recursion():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=250)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    compared(model, problem)
    found, s, P = filter_series(model, problem.observations).P, problem.system, problem.system.P0
    for t in range(250):
        prior = s.A @ P @ s.A.T + s.Q
        K = prior @ s.H.T @ torch.linalg.inv(s.H @ prior @ s.H.T + s.Sigma)
        P = prior - K @ s.H @ prior
        assert_close(found[t], P, rtol=1e-11, atol=1e-13)
    assert torch.equal(found[-1], found[-2])


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_doubling_holds_where_coordinates_differ_by_many_decades(smoothness):
    problem, rng = load("matern_sde", replicates=2, n_steps=150, smoothness=smoothness)
    model = component("model", "matern_sde", smoothness=smoothness).build(problem, rng)
    steps = run(component("inference", "kalman"), model, problem, rng)
    whole = filter_series(model, problem.observations)
    scale = steps.variance.amax((0, 1)).sqrt()
    assert_close(whole.mean.transpose(0, 1) / scale, steps.mean / scale, rtol=0, atol=1e-9)
    assert_close(whole.log_evidence, steps.log_normaliser, rtol=1e-10, atol=1e-9)


def test_a_covariance_that_never_settles_grows_as_it_should():
    s = system()
    A = torch.eye(3, dtype=F64)
    # the third is a random walk that nothing sees
    H = double([[1.0, 0, 0], [0, 1.0, 0]])
    drifting = type(s)(A, torch.diag(s.Q.diagonal()), H, s.Sigma, s.m0, torch.diag(s.P0.diagonal()))
    problem = sequence(drifting, 150, 1)
    compared(LinearGaussianModule(drifting), problem)
    third = filter_series(LinearGaussianModule(drifting), problem.observations).P[:, 2, 2]
    expected = s.P0[2, 2] + s.Q[2, 2] * torch.arange(1, 151, dtype=F64)
    assert_close(third, expected)


def test_a_settled_covariance_leaves_its_value_when_an_observation_is_missing():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=300)
    problem.observations[:, 220] = torch.nan
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    compared(model, problem)
    found = filter_series(model, problem.observations, problem.missing).P
    assert torch.equal(found[219], found[218])
    assert (found[220].diagonal() > found[219].diagonal()).all()


def test_parameters_of_each_replicate_are_its_own():
    s, problem = system(), sequence(system(), 6, 2)
    scale = double([1.0, 4.0]).view(2, 1, 1)
    both = LinearGaussianModule(type(s)(s.A, s.Q * scale, s.H, s.Sigma * scale, s.m0, s.P0))
    got = run_filter("kalman", problem, both)
    for r, value in enumerate((1.0, 4.0)):
        one = LinearGaussianModule(type(s)(s.A, s.Q * value, s.H, s.Sigma * value, s.m0, s.P0))
        alone = run_filter("kalman", problem, one)
        assert_close(got.log_normaliser[r], alone.log_normaliser[0])
        assert_close(got.mean[r], alone.mean[0])
    compared(both, problem)


def test_it_can_be_differentiated_with_respect_to_the_observations():
    problem, model = sequence(system(), 5, 2), LinearGaussianModule(system())
    y = problem.observations.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda y: filter_series(model, y).log_evidence, (y,))
    assert torch.autograd.gradcheck(lambda y: filter_series(model, y).mean, (y,))
