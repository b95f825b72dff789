"""Auxiliary filters: Algorithm 8 written out, the evidence they estimate, and what their
predictions have seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.runs.configured import component
from support.series.small_sequences import assert_same_estimates, run, sequence, system
from support.targets.known_targets import z_score

from components.maths.particles.resampling import ancestors
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.models.stochastic_volatility import VolatilityModule
from runner.execution.rng import Streams

NAN = math.nan


def density(y: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    gap = y - mean
    scale = math.sqrt((2 * math.pi) ** len(y) * np.linalg.det(covariance))
    return float(np.exp(-0.5 * gap @ np.linalg.solve(covariance, gap)) / scale)


def g_beta(g: float, beta: float, integral: float) -> float:
    """Eq. (6.6), times exp(−1/β + 1/(β + 1)): the constant that is taken off."""
    if beta == 0:
        return g
    return math.exp(g**beta / beta - integral / (beta + 1) - 1 / beta + 1 / (beta + 1))


@pytest.mark.parametrize("predictions", ["honest", "selected"])
@pytest.mark.parametrize(("beta", "stabiliser"), [(0.0, 0.0), (0.0, 0.05), (0.3, 0.0), (0.3, 0.05)])
def test_steps_are_algorithm_8_particle_by_particle(beta, stabiliser, predictions):
    problem, r, n, T = sequence(system(), 3, replicates=2), 2, 25, 3
    model, s = LinearGaussianModule(problem.system), problem.system
    keys = {"particles": n, "stabiliser": stabiliser, "predictions": predictions}
    name = "beta_auxiliary_filter" if beta else "auxiliary_filter"
    inference, rng = (
        component("inference", name, **keys, **({"beta": beta} if beta else {})),
        Streams(3),
    )
    H, A, Sigma = s.H.numpy(), s.A.numpy(), s.Sigma.numpy()
    top = density(np.zeros(2), np.zeros(2), Sigma)  # sup g
    integral = (
        0.0 if beta == 0 else top**beta / (1 + beta)
    )  # ∫ N(y; 0, Σ)^{1+β} dy = (2π)^{−β dy/2} |Σ|^{−β/2} / (1 + β)
    c = stabiliser * g_beta(top, beta, integral)

    state = inference.init(model, problem, rng)
    total = np.zeros(r)
    for t, batch in problem.batches("observation", rng, 0, T):
        before, w = state.particles, state.log_w.exp().numpy()
        drawn = rng.noise.get_state()  # the same numbers, in the order in which they are asked for
        ahead = model.transition(before, t, rng.noise) if predictions == "honest" else None
        G_mu = np.empty((r, n))
        for i in range(r):
            for k in range(n):
                mean = H @ (A @ before[i, k].numpy())
                G_mu[i, k] = g_beta(density(batch.y[i].numpy(), mean, Sigma), beta, integral) + c
        first = w * G_mu
        p = first / first.sum(1, keepdims=True)
        rows = ancestors("systematic", torch.from_numpy(p), rng.noise).view(r, n) % n
        x = model.transition(torch.stack([before[i, rows[i]] for i in range(r)]), t, rng.noise)
        second = np.empty((r, n))
        for i in range(r):
            for k in range(n):
                g = density(batch.y[i].numpy(), H @ x[i, k].numpy(), Sigma)
                second[i, k] = g_beta(g, beta, integral) / G_mu[i, rows[i, k]]
        rng.noise.set_state(drawn)
        state, _ = inference.step(state, batch, rng)
        weights = second / second.sum(1, keepdims=True)
        np.testing.assert_allclose(state.particles.numpy(), x.numpy())
        np.testing.assert_allclose(state.log_w.exp().numpy(), weights, rtol=1e-9)
        predicted = (
            np.mean(x.numpy() @ H.T, 1)
            if ahead is None
            else np.einsum("rn,rnd->rd", w, ahead.numpy() @ H.T)
        )
        got = inference.posterior(state)
        np.testing.assert_allclose(got.predicted[:, -1].numpy(), predicted, rtol=1e-9)
        mean = np.einsum("rn,rnd->rd", weights, x.numpy())
        np.testing.assert_allclose(got.mean[:, -1].numpy(), mean, rtol=1e-9)
        total += np.log(first.sum(1)) + np.log(second.mean(1))
        np.testing.assert_allclose(got.log_normaliser.numpy(), total, rtol=1e-9)


@pytest.mark.parametrize("stabiliser", [0.0, 0.05, 1.0])
def test_evidence_is_unbiased_and_distributions_are_those_of_kalman(stabiliser):
    calm = replace(
        system(), Q=0.15 * system().Q
    )  # without a stabiliser weights have a variance where Q is small beside Σ
    problem = sequence(calm, 4, replicates=3000)
    problem.observations[::2, 2] = NAN  # half of the replicates miss one
    model, keys = LinearGaussianModule(calm), {"stabiliser": stabiliser}
    got = run(
        component("inference", "auxiliary_filter", particles=60, **keys), model, problem, Streams(2)
    )
    exact = run(component("inference", "kalman"), model, problem, Streams(0))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert abs(z_score((got.log_normaliser - exact.log_normaliser)[half].exp(), 1.0)) < 4
    # a mean of ratios is biased by 1/N, which is not seen with many particles
    few = sequence(calm, 4, replicates=40)
    got = run(
        component("inference", "auxiliary_filter", particles=4000, **keys), model, few, Streams(2)
    )
    exact = run(component("inference", "kalman"), model, few, Streams(0))
    # Without a stabiliser the weights of particles that Ǧ forgets are so large that variances are
    # still too small.
    for name in (
        ("mean", "variance", "lower", "upper", "predicted") if stabiliser else ("predicted",)
    ):
        assert z_score(getattr(got, name), getattr(exact, name)[0]).abs().max() < 4.5, name


def test_a_stabiliser_makes_weights_finite_in_variance_where_the_states_move_far():
    problem = sequence(system(), 4, replicates=1500)
    model = LinearGaussianModule(problem.system)
    exact = run(component("inference", "kalman"), model, problem, Streams(0)).log_normaliser
    spread = {}
    for stabiliser in (0.0, 0.05):
        inference = component("inference", "auxiliary_filter", particles=60, stabiliser=stabiliser)
        ratios = [
            (run(inference, model, problem, Streams(s)).log_normaliser - exact).exp()
            for s in (2, 3, 4)
        ]
        spread[stabiliser] = max(
            float(ratio.std()) for ratio in ratios
        )  # where there is no variance, the largest tells
    assert abs(z_score(torch.cat(ratios), 1.0)) < 4
    assert spread[0.0] > 2 * spread[0.05]


def test_selected_predictions_have_seen_what_they_predict():
    problem = sequence(system(), 4, replicates=40)
    model = LinearGaussianModule(problem.system)
    exact = run(component("inference", "kalman"), model, problem, Streams(0)).predicted
    errors = {}
    for predictions in ("honest", "selected"):
        inference = component(
            "inference",
            "auxiliary_filter",
            particles=2000,
            stabiliser=0.05,
            predictions=predictions,
        )
        got = run(inference, model, problem, Streams(2)).predicted
        errors[predictions] = (got - problem.observations).abs().mean()
        assert (z_score(got, exact[0]).abs().max() < 4.5) == (predictions == "honest")
    assert errors["selected"] < 0.9 * errors["honest"]


@pytest.mark.parametrize("beta", [0.0, 1e-12])
def test_beta_to_zero_is_the_auxiliary_filter(beta):
    problem = sequence(system(), 5, replicates=3)
    problem.observations[1, 2] = NAN
    model = LinearGaussianModule(problem.system)
    exact = run(
        component("inference", "auxiliary_filter", particles=50), model, problem, Streams(9)
    )
    zero = run(
        component("inference", "beta_auxiliary_filter", particles=50, beta=beta),
        model,
        problem,
        Streams(9),
    )
    assert_same_estimates(zero, exact)
    assert exact.evidence
    assert zero.evidence == (beta == 0)


def test_what_has_no_bound_needs_no_stabiliser_and_may_have_none():
    filters = {
        c: component("inference", "beta_auxiliary_filter", stabiliser=c) for c in (0.0, 0.05)
    }
    assert "bounded_observation" not in filters[0.0].required_capabilities("sequence")
    assert filters[0.05].asked_by_keys() == {"bounded_observation": "stabiliser"}
    assert not hasattr(VolatilityModule(0.0, 0.9, 0.2, torch.zeros(1)), "log_observation_bound")
