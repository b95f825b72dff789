"""SMC² compared with the evidence and the posterior by the Kalman filter on a grid of the
parameters."""

import math
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import F64, component
from support.series.small_sequences import run
from support.small.small_problems import advance, check_resumed
from support.targets.known_targets import z_score
from support.targets.unknown_scales import (
    build_filter,
    exact,
    generalised_moments,
    model,
    repeat_series,
    series,
)
from torch.testing import assert_close

from components.posteriors.mixing import inner_filter_checks
from components.series.parameters.smc2 import SMC2
from runner.execution.rng import Streams


def method(kind=SMC2, particles=15, beta=None, **keys):
    keys = {"sets": 100, "most_particles": particles} | keys
    part = build_filter(particles, beta)
    return kind(**dict(component("inference", "smc2", filter=part, **keys)))


def moments(posterior, mean):
    """Weighted means, and second moments around ``mean``, of each replicate [R, P]."""
    draws = posterior.parameters
    w = draws.log_weights.softmax(1).unsqueeze(2)
    return (w * draws.values).sum(1), (w * (draws.values - mean).square()).sum(1)


class WithoutThePrior(SMC2):
    """Broken: acceptance uses only the likelihoods."""

    def _rejuvenate(self, state, replicates, t, rng):
        class Flat(type(state.model)):
            def log_prior(self, theta):
                return theta.new_zeros(len(theta))

        model_class = type(state.model)
        state.model.__class__ = Flat
        try:
            return super()._rejuvenate(state, replicates, t, rng)
        finally:
            state.model.__class__ = model_class


class StaleFilters(SMC2):
    """Broken: moved parameters keep the filters of the previous ones."""

    def _rejuvenate(self, state, replicates, t, rng):
        new_state, share = super()._rejuvenate(state, replicates, t, rng)
        new_state.x = state.x
        return new_state, share


def against_exact(kind, repeats=60, rate=1.0, **keys):
    """z of the evidence, the means and the second moments over replicates of one series."""
    problem = series(1, n_steps=14)
    mean, sd, log_evidence = exact(problem, rate=rate)
    inference = method(kind, rate=rate, **keys)
    posterior = run(inference, model(problem), repeat_series(problem, repeats), Streams(3))
    first, second = moments(posterior, mean)
    ratio = (posterior.log_normaliser - log_evidence).exp()
    return torch.cat(
        [z_score(ratio, 1.0).view(1), z_score(first, mean), z_score(second, sd.square())]
    ).abs()


def test_evidence_and_posterior_equal_the_kalman_filter():
    assert against_exact(SMC2, sets=200, rejuvenate_below=0.7).max() < 4


def test_rate_raises_the_evidence_to_a_power():
    """Enough particles for Ẑ^w to be nearly unbiased for Z^w."""
    assert against_exact(SMC2, 30, rate=0.3, sets=100, particles=60).max() < 4
    problem = series(1, n_steps=14)
    wrong = (exact(problem, rate=0.3)[1] - exact(problem)[1]).abs()
    assert wrong.max() > 0.05


@pytest.mark.parametrize("kind", [WithoutThePrior, StaleFilters])
def test_broken_samplers_are_detected(kind):
    assert against_exact(kind, sets=200, rejuvenate_below=0.7, moves=2).max() > 4.5


def weighed(rejuvenate_below=0.0):
    """A method after six observations of two replicates without resampling, its state and its
    streams."""
    problem = series(2)
    rng = Streams(6)
    inference = method(sets=40, rejuvenate_below=rejuvenate_below)
    state = inference.init(model(problem), problem, rng)
    return inference, advance(inference, state, problem, rng, 0, 6)[0], rng


def test_weights_equal_those_of_filters_before_resampling():
    _, state, _ = weighed()
    log_z = state.log_z.view(2, 40)
    assert_close(state.filtered.log_normaliser, log_z.logsumexp(1) - math.log(40))
    assert_close(state.log_w, log_z.log_softmax(1))


def test_rejuvenated_sets_weigh_the_same_and_others_stay():
    inference, state, rng = weighed()
    originals = {key: x.clone() for key, x in vars(state).items() if isinstance(x, torch.Tensor)}
    after, share = inference._rejuvenate(state, torch.tensor([1]), 6, rng)
    assert 0 < share < 1
    assert_close(after.log_w[1], torch.full((40,), -math.log(40), dtype=F64))
    assert torch.equal(after.log_w[0], originals["log_w"][0])
    for name in ("theta", "log_z", "x", "log_wx"):
        assert torch.equal(vars(after)[name][:40], originals[name][:40]), name
    for m in range(40, 80):  # an unmoved set has the filter of its ancestor
        (same,) = (originals["theta"] == after.theta[m]).all(1).nonzero().T
        if len(same):
            assert torch.equal(after.x[m], originals["x"][same[0]])
            assert after.log_z[m] == originals["log_z"][same[0]]


@pytest.mark.slow
@pytest.mark.parametrize(("particles", "sets", "moves"), [(10, 800, 1), (50, 800, 3)])
def test_evidence_and_posterior_are_exact_with_many_sets(particles, sets, moves):
    assert against_exact(SMC2, particles=particles, sets=sets, moves=moves).max() < 4


def test_doubled_filters_weigh_like_full_ones():
    """W Ẑ^{2N}/Ẑ^N with W ∝ Ẑ^N: weights and evidence match Ẑ^{2N}."""
    inference, state, rng = weighed()
    old_log_z = state.log_z.clone()
    after = inference._double_particles(state, 6, rng)
    assert after.x.shape[1] == 2 * 15
    log_z = after.log_z.view(2, 40)
    assert not torch.isclose(log_z, old_log_z.view(2, 40)).any()
    assert_close(after.log_w, log_z.log_softmax(1))
    assert_close(after.filtered.log_normaliser, log_z.logsumexp(1) - math.log(40))


def test_filters_double_and_results_stay_exact():
    keys = {"particles": 4, "least_acceptance": 1.0}
    assert against_exact(SMC2, most_particles=16, sets=150, rejuvenate_below=0.7, **keys).max() < 4
    problem = series(2)
    inference = method(most_particles=10, rejuvenate_below=1.0, sets=20, **keys)
    rng = Streams(0)
    state = inference.init(model(problem), problem, rng)
    numbers = []
    for _, batch in problem.batches("observation", rng, 0, 6):
        state, _ = inference.step(state, batch, rng)
        numbers.append(state.particles)
    assert state.x.shape == (40, 8, 1)
    assert numbers[-1] == 8


def test_generalised_posterior_keeps_scale_dependent_integrals():
    problem = series(1, n_steps=8, missing=0.0, seed=5)
    problem.observations[0, 3] += 8.0
    mean, sd = generalised_moments(problem, 0.3)
    posterior = run(
        method(beta=0.3, sets=200),
        model(problem, both=False),
        repeat_series(problem, 50),
        Streams(1),
    )
    first, second = moments(posterior, mean)
    assert z_score(first, mean).abs() < 4
    assert z_score(second, sd**2).abs() < 4
    assert z_score(first, generalised_moments(problem, 0.3, integral=False)[0]).abs() > 8
    assert not posterior.evidence


def test_states_follow_the_mixture_over_parameters():
    problem = series(1, n_steps=6)
    posterior = run(method(sets=1500, particles=60), model(problem), problem, Streams(4))
    points = [
        torch.exp(torch.linspace(math.log(m) - 3.5 * s, math.log(m) + 3.5 * s, 40))
        for m, s in ((0.8, 0.4), (0.6, 0.6))
    ]
    x = torch.cartesian_prod(*points).double()
    built = model(problem)
    many = repeat_series(problem, len(x))
    inference = component("inference", "kalman")
    rng = Streams(0)
    state = inference.init(built.at(x.log()), many, rng)
    means = []
    variances = []
    for _, batch in many.batches("observation", rng, 0, 6):
        state, _ = inference.step(state, batch, rng)
        w = (built.log_prior(x.log()) + state.filtered.log_normaliser).softmax(0)
        mean = w @ state.m[:, 0]
        means.append(mean)
        variances.append(w @ (state.P[:, 0, 0] + (state.m[:, 0] - mean).square()))
    sd = torch.stack(variances).sqrt()
    assert ((posterior.mean[0, :, 0] - torch.stack(means)) / sd).abs().max() < 0.12
    assert (posterior.variance[0, :, 0].sqrt() / sd - 1).abs().max() < 0.12
    assert ((posterior.upper - posterior.lower)[0, :, 0] / sd).sub(2 * 1.645).abs().max() < 0.5


def test_scores_have_learnt_values_but_no_convergence_of_chains():
    problem = series(3)
    posterior = run(method(sets=30), model(problem), problem, Streams(0))
    scores = problem.score(posterior, Streams(0))
    assert {
        "nmse",
        "medae",
        "mean/observation_sd",
        "error/state_sd",
        "coverage90/state_sd",
        "weight_ess",
    } <= set(scores)
    assert not {"rhat", "ess"} & set(scores)
    first, _ = moments(posterior, 0.0)
    assert_close(scores["mean/observation_sd"], first[:, 0])
    assert posterior.parameters.select_replicate(1).draws.shape == (1, 30, 2)


@pytest.mark.parametrize(("outlier", "passed"), [(0.0, True), (1e4, False)])
def test_collapsed_filters_of_sets_fail_a_check(outlier, passed):
    problem = series(2)
    problem.observations[:, 2] += outlier
    posterior = run(method(sets=30), model(problem), problem, Streams(0)).parameters
    assert posterior.stats["filter_ess"].shape == (2, 30)
    assert (posterior.stats["filter_ess"] >= 1 - 1e-9).all()
    (check,) = inner_filter_checks(posterior)
    assert check.passed is passed


@pytest.mark.parametrize("stopped", [3, 7])
def test_resumed_is_bit_identical(tmp_path, stopped):
    keys = {"sets": 20, "particles": 4, "most_particles": 8}
    inference = method(rejuvenate_below=0.9, least_acceptance=0.9, **keys)
    built = SimpleNamespace(build=lambda problem, rng: model(problem))
    check_resumed(inference, built, series(2), tmp_path, 10, stopped)
