import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, load
from support.series.small_sequences import run, run_filter, sequence, system
from support.small.small_problems import advance
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.errors import NumericalError
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams


def evidence_ratio(problem, resample_below, spoil=None, particles=40):
    """exp(log Ẑ − log Z) of every replicate; its expectation is 1."""
    inference = component(
        "inference", "bootstrap_filter", particles=particles, resample_below=resample_below
    )
    got = run(inference, LinearGaussianModule(problem.system), problem, Streams(5), spoil)
    return (got.log_normaliser - run_filter("kalman", problem).log_normaliser).exp()


@pytest.mark.parametrize("resample_below", [0.0, 0.5, 1.0])
def test_evidence_is_unbiased(resample_below):
    ratio = evidence_ratio(sequence(system(), 4, replicates=6000), resample_below)
    assert abs(z_score(ratio, 1.0)) < 4
    # Its logarithm is not (Jensen): the check above is about the estimate itself and sees such
    # things.
    assert z_score(ratio.log(), 0.0) < -4


def test_dropped_weights_bias_the_evidence():
    def forget(state):
        state.log_w = torch.full_like(state.log_w, -math.log(state.log_w.shape[1]))

    ratio = evidence_ratio(sequence(system(), 4, replicates=6000), 0.0, forget)
    assert abs(z_score(ratio, 1.0)) > 10


@pytest.mark.parametrize("resample_below", [0.5, 1.0])
def test_filtering_distributions_equal_kalman(resample_below):
    problem = sequence(system(), 8, replicates=60)
    keys = {"particles": 3000, "resample_below": resample_below}
    got = run_filter("bootstrap_filter", problem, seed=2, **keys)
    exact = run_filter("kalman", problem)
    for name in ("mean", "variance", "lower", "upper", "predicted"):
        assert z_score(getattr(got, name), getattr(exact, name)[0]).abs().max() < 4.5, name


@pytest.mark.parametrize("missing", [False, True])
def test_one_step_predictions_use_the_previous_weights(missing):
    """Σ_n w_{t−1}^n E[y_t | x_t^n] without resampling; the same draws without weights give another
    value."""
    problem = sequence(system(), 3, replicates=4)
    if missing:
        problem.observations[1, 1] = float("nan")
    model = LinearGaussianModule(problem.system)
    inference = component("inference", "bootstrap_filter", particles=30, resample_below=0.0)
    rng = Streams(3)
    state = inference.init(model, problem, rng)
    for t, batch in problem.batches("observation", rng, 0, 3):
        previous = state.particles
        log_w = state.log_w
        drawn = rng.noise.get_state()
        now = model.transition(previous, t, rng.noise)
        rng.noise.set_state(drawn)
        state, _ = inference.step(state, batch, rng)
        for r in range(4):
            literal = sum(log_w[r, n].exp() * (model.H @ now[r, n]) for n in range(30))
            assert_close(inference.posterior(state).predicted[r, t - 1], literal)
            if t > 1 and not (missing and t == 2):
                assert (literal - now[r].mean(0) @ model.H.T).abs().max() > 1e-3


def test_filter_without_weights_differs_from_kalman():
    problem = sequence(system(), 8, replicates=60)
    blind = replace(problem.system, Sigma=100 * problem.system.Sigma)
    inference = component("inference", "bootstrap_filter", particles=3000)
    got = run(inference, LinearGaussianModule(blind), problem, Streams(2))
    assert z_score(got.mean, run_filter("kalman", problem).mean[0]).abs().max() > 20


def test_impossible_observations_are_named():
    problem = sequence(system(), 5, replicates=3)
    problem.observations[1, 2] = float("inf")  # NaN would mean a missing observation
    inference = component("inference", "bootstrap_filter", particles=20)
    with pytest.raises(
        NumericalError,
        match=r"t = 3 in replicates \[1\]; y = \(inf, inf\).*; raise inference.particles",
    ):
        run(inference, LinearGaussianModule(problem.system), problem, Streams(0))


def test_distant_observations_do_not_underflow():
    problem = sequence(system(), 3, replicates=2)
    problem.observations[:, 1] = 1e6
    got = run_filter("bootstrap_filter", problem, particles=50)
    assert torch.isfinite(got.mean).all()


def test_scores_before_the_end_use_the_times_so_far():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=30)
    inference = component("inference", "bootstrap_filter", particles=50)
    model = component("model", "linear_gaussian_ssm")
    state = inference.init(model.build(problem, rng), problem, rng)
    assert problem.score(inference.posterior(state), rng) == {}
    state, _ = advance(inference, state, problem, rng, 0, 10)
    scores = problem.score(inference.posterior(state), rng)
    assert all(torch.isfinite(v).all() for v in scores.values())
    assert set(problem.draw(inference.posterior(state), rng)) == {
        "trajectory",
        "coverage",
        "effective_size",
    }


def test_scores_are_numbers_or_one_per_replicate():
    for replicates in (1, 3):
        problem, rng = load("wiener_velocity", replicates=replicates, n_steps=5)
        inference = component("inference", "bootstrap_filter", particles=20)
        model = component("model", "linear_gaussian_ssm").build(problem, rng)
        scores = problem.score(run(inference, model, problem, rng), rng)
        nmse = scores["nmse"]
        assert isinstance(nmse, float) if replicates == 1 else nmse.shape == (3,)


def test_oracle_is_gaussian_or_the_literal_mixture_if_attacked():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=5)
    oracle = component("model", "contaminated_ssm")
    plain = component("model", "linear_gaussian_ssm").build(problem, rng)
    x = plain.init((2, 7), rng.init)
    y = problem.observations[:, 0]
    assert_close(
        oracle.build(problem, rng).log_observation(y, x, 1), plain.log_observation(y, x, 1)
    )
    attacked = problem.attack(
        component("attacker", "gaussian_contamination", probability=0.2, sd=5.0), rng
    )
    got = oracle.build(attacked, rng).log_observation(y, x, 1)
    for r in range(2):
        for n in range(7):
            d = torch.distributions.MultivariateNormal
            narrow = d(x[r, n, :2], torch.eye(2, dtype=F64)).log_prob(y[r]).exp()
            wide = d(x[r, n, :2], 26 * torch.eye(2, dtype=F64)).log_prob(y[r]).exp()
            assert_close(got[r, n], (0.8 * narrow + 0.2 * wide).log())
