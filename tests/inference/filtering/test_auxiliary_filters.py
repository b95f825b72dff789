"""Auxiliary filters: literal Algorithm 8, the estimated evidence, and the observations that their
predictions use."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component
from support.series.small_sequences import assert_same_estimates, run, run_filter, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.capabilities import BoundedObservation
from components.maths.particles.resampling import ancestors
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.models.stochastic_volatility import VolatilityModule
from runner.execution.rng import Streams

NAN = math.nan


def g_beta(g, beta, integral):
    """Eq. (6.6), times exp(−1/β + 1/(β + 1)), the constant that the filter removes."""
    if beta == 0:
        return g
    return (g**beta / beta - integral / (beta + 1) - 1 / beta + 1 / (beta + 1)).exp()


@pytest.mark.parametrize("predictions", ["honest", "selected"])
@pytest.mark.parametrize(("beta", "stabiliser"), [(0.0, 0.0), (0.0, 0.05), (0.3, 0.0), (0.3, 0.05)])
def test_steps_match_algorithm_8(beta, stabiliser, predictions):
    problem = sequence(system(), 3, replicates=2)
    r = 2
    n = 25
    T = 3
    model = LinearGaussianModule(problem.system)
    s = problem.system
    keys = {"particles": n, "stabiliser": stabiliser, "predictions": predictions}
    name, settings = ("beta_auxiliary_filter", {"beta": beta}) if beta else ("auxiliary_filter", {})
    inference = component("inference", name, **keys, **settings)
    rng = Streams(3)
    zero = torch.zeros(2, dtype=F64)
    law = torch.distributions.MultivariateNormal(zero, s.Sigma)
    top = law.log_prob(zero).exp()  # sup g
    # ∫ N(y; 0, Σ)^{1+β} dy = (2π)^{−β dy/2} |Σ|^{−β/2} / (1 + β)
    integral = top**beta / (1 + beta)

    def G(x, y):
        return g_beta(law.log_prob(y.unsqueeze(1) - x @ s.H.T).exp(), beta, integral)  # [R, N]

    c = stabiliser * g_beta(top, beta, integral)
    state = inference.init(model, problem, rng)
    total = torch.zeros(r)
    for t, batch in problem.batches("observation", rng, 0, T):
        particles_before = state.particles
        w = state.log_w.exp()
        draws = rng.noise.get_state()  # the same numbers, in the order of the calls
        ahead = (
            model.transition(particles_before, t, rng.noise) if predictions == "honest" else None
        )
        G_mu = G(particles_before @ s.A.T, batch.y) + c
        first = w * G_mu
        p = first / first.sum(1, keepdim=True)
        rows = ancestors("systematic", p, rng.noise).view(r, n) % n
        x = model.transition(particles_before.take_along_dim(rows[..., None], 1), t, rng.noise)
        second = G(x, batch.y) / G_mu.take_along_dim(rows, 1)
        rng.noise.set_state(draws)
        state, _ = inference.step(state, batch, rng)
        weights = second / second.sum(1, keepdim=True)
        honest = ahead is not None
        predicted = (w[..., None] * ahead).sum(1) if honest else x.mean(1)
        total = total + first.sum(1).log() + second.mean(1).log()
        actual = inference.posterior(state)
        values = state.particles, state.log_w.exp(), actual.predicted[:, -1], actual.mean[:, -1]
        mean = (weights[..., None] * x).sum(1)
        assert_close(values, (x, weights, predicted @ s.H.T, mean), rtol=1e-9, atol=1e-12)
        assert_close(actual.log_normaliser, total, rtol=1e-9, atol=0)


@pytest.mark.parametrize("stabiliser", [0.0, 0.05, 1.0])
def test_evidence_is_unbiased_and_moments_match_kalman(stabiliser):
    # without a stabiliser weights have a variance if Q is small compared with Σ
    calm = replace(system(), Q=0.15 * system().Q)
    problem = sequence(calm, 4, replicates=3000)
    problem.observations[::2, 2] = NAN  # half of the replicates miss one
    model = LinearGaussianModule(calm)
    keys = {"stabiliser": stabiliser}
    actual = run_filter("auxiliary_filter", problem, model, seed=2, particles=60, **keys)
    exact = run_filter("kalman", problem, model)
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert abs(z_score((actual.log_normaliser - exact.log_normaliser)[half].exp(), 1.0)) < 4
    # a mean of ratios has a bias of order 1/N, which is negligible with many particles
    few = sequence(calm, 4, replicates=40)
    actual = run_filter("auxiliary_filter", few, model, seed=2, particles=4000, **keys)
    exact = run_filter("kalman", few, model)
    # Without a stabiliser, particles with negligible Ǧ have such large weights that variances are
    # still too small.
    for name in (
        ("mean", "variance", "lower", "upper", "predicted") if stabiliser else ("predicted",)
    ):
        assert z_score(getattr(actual, name), getattr(exact, name)[0]).abs().max() < 4.5, name


def test_stabiliser_bounds_variance_of_weights():
    problem = sequence(system(), 4, replicates=1500)
    model = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", problem).log_normaliser
    spread = {}
    for stabiliser in (0.0, 0.05):
        inference = component("inference", "auxiliary_filter", particles=60, stabiliser=stabiliser)
        ratios = [
            (run(inference, model, problem, Streams(s)).log_normaliser - exact).exp()
            for s in (2, 3, 4)
        ]
        # without a finite variance, compare the largest weights
        spread[stabiliser] = max(float(ratio.std()) for ratio in ratios)
    assert abs(z_score(torch.cat(ratios), 1.0)) < 4
    assert spread[0.0] > 2 * spread[0.05]


def test_selected_predictions_use_their_observation():
    problem = sequence(system(), 4, replicates=40)
    model = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", problem).predicted
    errors = {}
    for predictions in ("honest", "selected"):
        inference = component(
            "inference",
            "auxiliary_filter",
            particles=2000,
            stabiliser=0.05,
            predictions=predictions,
        )
        actual = run(inference, model, problem, Streams(2)).predicted
        errors[predictions] = (actual - problem.observations).abs().mean()
        assert (z_score(actual, exact[0]).abs().max() < 4.5) == (predictions == "honest")
    assert errors["selected"] < 0.9 * errors["honest"]


@pytest.mark.parametrize("beta", [0.0, 1e-12])
def test_beta_to_zero_is_auxiliary_filter(beta):
    problem = sequence(system(), 5, replicates=3)
    problem.observations[1, 2] = NAN
    exact = run_filter("auxiliary_filter", problem, seed=9, particles=50)
    zero = run_filter("beta_auxiliary_filter", problem, seed=9, particles=50, beta=beta)
    assert_same_estimates(zero, exact)
    assert exact.evidence
    assert zero.evidence == (beta == 0)


def test_stabiliser_requires_bounded_observation():
    filters = {
        c: component("inference", "beta_auxiliary_filter", stabiliser=c) for c in (0.0, 0.05)
    }
    assert BoundedObservation not in filters[0.0].required_capabilities("sequence")
    assert filters[0.05].asked_by_keys() == {BoundedObservation: "stabiliser"}
    assert not hasattr(VolatilityModule(0.0, 0.9, 0.2, torch.zeros(1)), "log_observation_bound")
