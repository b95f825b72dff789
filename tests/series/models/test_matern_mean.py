"""Mean and robust moments of the Matérn process, compared with the dense Gaussian process."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import component, generator, load
from support.series.small_sequences import run
from torch.testing import assert_close

from components.errors import NumericalError
from components.series.models.matern_sde import robust_moments
from runner.execution.rng import Streams

MEAN = 11.0
EXACT = ("rts_smoother", "extended_rts_smoother")


def shift_mean(n_steps=60, replicates=2):
    """A simulated process with another mean, its problem and model, and the process with mean 0."""
    centred, rng = load("matern_sde", seed=4, replicates=replicates, n_steps=n_steps)
    shifted_data = replace(centred, observations=centred.observations + MEAN)
    models = [component("model", "matern_sde", mean=mean) for mean in (MEAN, 0.0)]
    return shifted_data, models[0].build(shifted_data, rng), centred, models[1].build(centred, rng)


@pytest.mark.parametrize("name", EXACT)
def test_mean_only_shifts_the_exact_smoother(name):
    shifted_data, model, centred, plain = shift_mean()
    got, expected = (
        run(component("inference", name), m, p, Streams(0))
        for m, p in ((model, shifted_data), (plain, centred))
    )
    e = torch.tensor([MEAN, 0.0, 0.0]).to(got.mean)
    assert_close(got.mean - e, expected.mean, rtol=1e-9, atol=1e-7)
    assert_close(got.variance, expected.variance)


@pytest.mark.parametrize("name", ["bootstrap_filter", "guided_filter", "auxiliary_filter"])
def test_particle_filters_with_a_mean_estimate_the_evidence(name):
    shifted_data, model, _, _ = shift_mean(30)
    exact = run(component("inference", "kalman"), model, shifted_data, Streams(0)).log_normaliser
    posterior = run(component("inference", name, particles=4000), model, shifted_data, Streams(1))
    assert (posterior.log_normaliser - exact).abs().max() < 0.6
    assert (posterior.predicted - shifted_data.observations).abs().median() < 3


def test_proposal_and_transition_densities_satisfy_bayes():
    """f(x' | x) g(y | x') = q(x' | x, y) p(y | x), for every x'."""
    shifted_data, model, _, _ = shift_mean(3)
    g = generator(1)
    x = model.init((2, 5), g)
    after = model.transition(x, 1, g)
    y = shifted_data.observations[:, 0]
    log_joint = model.log_transition(after, x, 1) + model.log_observation(y, after, 1)
    right = model.log_proposal(after, y, x, 1) + model.log_predictive(y, x, 1)
    assert_close(log_joint, right, rtol=1e-8, atol=1e-6)


def test_robust_moments_equal_scipy_and_ignore_outliers():
    rng = np.random.default_rng(2)
    y = rng.normal(20.0, 3.0, 401)
    y[:40] += 500.0
    with_gap = torch.tensor(np.append(y, np.nan)).view(1, -1, 1)
    centre, variance = robust_moments(with_gap)
    assert centre == pytest.approx(np.median(y))
    assert variance == pytest.approx((1.4826 * stats.median_abs_deviation(y)) ** 2)
    assert abs(centre - 20) < 1
    assert 2.5 < variance**0.5 < 4.0


def test_learnt_moments_equal_those_of_the_model():
    shifted_data, _, _, _ = shift_mean()
    centre, variance = robust_moments(shifted_data.observations)
    model = component("model", "matern_sde", mean="median", variance="mad").build(
        shifted_data, None
    )
    assert_close(model.m0, torch.tensor([centre, 0.0, 0.0]).to(model.m0))
    assert_close(model.P0[0, 0], torch.tensor(variance).to(model.P0))


def test_constant_observations_have_no_learnt_variance():
    shifted_data, _, _, _ = shift_mean(5)
    flat = replace(shifted_data, observations=torch.ones_like(shifted_data.observations))
    with pytest.raises(
        NumericalError, match=r"model\.variance=mad: .*; set model\.variance to a number"
    ):
        component("model", "matern_sde", variance="mad").build(flat, None)
