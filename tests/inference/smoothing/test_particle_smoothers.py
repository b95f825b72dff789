"""Particle smoothers compared with the joint Gaussian of the whole series by the
Rauch-Tung-Striebel smoother."""

import dataclasses
import math
from copy import deepcopy

import pytest
import torch
from support.runs.configured import component, double, generator, normal
from support.series.exact_smoothing import smooth_exactly
from support.series.small_sequences import run, run_filter, sequence
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import LinearGaussianSystem
from components.series.smoothing import two_filter
from components.series.smoothing.transitions import pairs
from runner.execution.rng import Streams

SMOOTHERS = ["ffbs", "ffbsi", "two_filter"]
T = 6
R = 60
N = 600


def matrix(*rows):
    return double(rows)


# Observations that leave weight on many particles, because quantiles of few particles are biased.
GENTLE = LinearGaussianSystem(
    A=matrix([0.9, 0.4], [-0.2, 0.8]),
    Q=matrix([0.5, 0.2], [0.2, 0.4]),
    H=matrix([1.0, 0.5]),
    Sigma=matrix([1.5]),
    m0=matrix([1.0, -1.0])[0],
    P0=matrix([1.0, -0.3], [-0.3, 0.8]),
)


def smoother(name, particles=N, **filter_keys):
    keys = {"trajectories": particles} if name == "ffbsi" else {}
    filter_name = "beta_bootstrap_filter" if "beta" in filter_keys else "bootstrap_filter"
    return component(
        "inference",
        name,
        filter=component("inference", filter_name, particles=particles, **filter_keys),
        **keys,
    )


def gappy(missing):
    problem = sequence(GENTLE, T, R)
    if missing:
        problem.observations[:, 2] = math.nan
        problem.observations[:, 4] = math.nan
    return problem


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", SMOOTHERS)
def test_smoothing_matches_joint_gaussian(name, missing):
    problem = gappy(missing)
    actual = run(smoother(name), LinearGaussianModule(problem.system), problem, Streams(3))
    exact = smooth_exactly(problem.system, problem.observations[0])
    assert z_score(actual.mean, exact.mean).abs().max() < 4.5
    assert z_score(actual.variance, exact.variance).abs().max() < 4.5
    quantile = 1.6448536269514722 * exact.variance.sqrt()
    for bound, true in (
        (actual.lower, exact.mean - quantile),
        (actual.upper, exact.mean + quantile),
    ):
        # quantiles of finitely many particles are biased
        assert (bound.mean(0) - true).abs().max() < 0.08
    s = problem.system
    expected = exact.mean @ s.H.T
    spread = (s.H @ exact.covariance @ s.H.T + s.Sigma).diagonal(dim1=1, dim2=2)
    assert z_score(actual.signal.mean, expected).abs().max() < 4.5
    assert (
        actual.signal.upper.mean(0) - expected - 1.6448536269514722 * spread.sqrt()
    ).abs().max() < 0.1
    # The filter, without later observations, has a large error.
    filtered = run_filter("bootstrap_filter", problem, LinearGaussianModule(s), seed=3, particles=N)
    assert z_score(filtered.mean, exact.mean).abs().max() > 20


class Opaque(torch.nn.Module):
    """Model with only draws and densities."""

    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def init(self, shape, generator):
        return self.whole.init(shape, generator)

    def transition(self, x, t, generator):
        return self.whole.transition(x, t, generator)

    def log_transition(self, x, x_prev, t):
        return self.whole.log_transition(x, x_prev, t)

    def log_observation(self, y, x, t):
        return self.whole.log_observation(y, x, t)

    def observation_mean(self, x, t):
        return self.whole.observation_mean(x, t)


@pytest.mark.parametrize("block", [1 << 20, 50])
def test_pair_weights_are_independent_of_block_size(monkeypatch, block):
    monkeypatch.setattr("components.series.smoothing.transitions.BLOCK", block)
    g = generator(0)
    later, earlier = (normal(g, 3, k, 2) for k in (5, 7))
    log_w = torch.log_softmax(normal(g, 3, 7), 1)
    model = LinearGaussianModule(GENTLE)
    law = torch.distributions.MultivariateNormal((earlier @ GENTLE.A.T)[:, None], GENTLE.Q)
    literal = log_w[:, None] + law.log_prob(later[:, :, None])  # [R, later, earlier]
    for module in (model, Opaque(model)):
        actual = torch.full_like(literal, math.nan)
        for pair in pairs(module, later, earlier, log_w, 2):
            actual[pair.replicates, pair.later] = pair.logits + pair.constant
        assert_close(actual, literal, rtol=1e-10, atol=1e-10)


def test_ffbs_weights_match_published_formula():
    """w_{t|T}^i = Σ_j w_{t+1|T}^j w_t^i f(x_{t+1}^j | x_t^i) / Σ_l w_t^l f(x_{t+1}^j | x_t^l)."""
    problem = sequence(GENTLE, 4, 2)
    model = LinearGaussianModule(GENTLE)
    n = 9
    inference = smoother("ffbs", n)
    rng = Streams(1)
    state = inference.init(model, problem, rng)
    clouds = []
    for _, batch in problem.batches("observation", rng, 0, 4):
        state, _ = inference.step(state, batch, rng)
        clouds.append((state.filter.weighted.x.clone(), state.filter.weighted.log_w.exp()))
    actual = inference.posterior(state)
    for r in range(2):
        x = clouds[-1][0][r]
        w = clouds[-1][1][r]
        for t in range(2, -1, -1):
            particles_before = clouds[t][0][r]
            log_w_before = clouds[t][1][r]
            law = torch.distributions.MultivariateNormal(
                (particles_before @ GENTLE.A.T)[:, None], GENTLE.Q
            )
            f = law.log_prob(x).exp()  # [i, j]
            w = log_w_before * (f / (log_w_before @ f) @ w)
            x = particles_before
            assert_close(actual.mean[r, t], w @ x)
            assert_close(actual.variance[r, t], w @ (x - w @ x).square())


@pytest.mark.parametrize("name", SMOOTHERS)
def test_beta_to_zero_is_bootstrap_smoother(name):
    problem = gappy(True)
    model = LinearGaussianModule(GENTLE)
    exact = run(smoother(name, 50), model, problem, Streams(3))
    zero = run(smoother(name, 50, beta=0.0), model, problem, Streams(3))
    for what in ("mean", "variance", "lower", "upper"):
        assert torch.equal(getattr(zero, what), getattr(exact, what)), what
    other = run(smoother(name, 50, beta=0.3), model, problem, Streams(3))
    assert not torch.equal(other.mean, exact.mean)


@pytest.mark.parametrize("name", SMOOTHERS)
def test_backward_pass_is_repeatable(name):
    problem = gappy(False)
    model = LinearGaussianModule(GENTLE)
    inference = smoother(name, 40)
    quiet = run(inference, model, problem, Streams(2))
    rng = Streams(2)
    state = inference.init(model, problem, rng)
    assert problem.score(inference.posterior(state), rng) == {}
    for t, batch in problem.batches("observation", rng, 0, T):
        state, _ = inference.step(state, batch, rng)
        early = inference.posterior(state)
        assert early.mean.shape == (R, t, 2)
        state = deepcopy(state)
        state.smoothed = None
    for what in ("mean", "variance", "lower", "upper"):
        assert torch.equal(getattr(inference.posterior(state), what), getattr(quiet, what)), what


def test_weights_correct_wide_proposal(monkeypatch):
    """The result is the same with a proposal 1.5 times as wide as the prior's moments."""
    whole = two_filter.artificial_priors

    def wide(model, times, generator):
        return [
            path if path.L_B is None else dataclasses.replace(path, L_B=1.5 * path.L_B)
            for path in whole(model, times, generator)
        ]

    monkeypatch.setattr(two_filter, "artificial_priors", wide)
    problem = gappy(False)
    actual = run(smoother("two_filter"), LinearGaussianModule(GENTLE), problem, Streams(3))
    exact = smooth_exactly(GENTLE, problem.observations[0])
    assert z_score(actual.mean, exact.mean).abs().max() < 4.5
    assert z_score(actual.variance, exact.variance).abs().max() < 4.5


@pytest.mark.parametrize("missing", [False, True])
def test_rts_signal_is_exact(missing):
    problem = gappy(missing)
    actual = run_filter("rts_smoother", problem, LinearGaussianModule(GENTLE)).signal
    exact = smooth_exactly(GENTLE, problem.observations[0])
    spread = (
        (GENTLE.H @ exact.covariance @ GENTLE.H.T + GENTLE.Sigma).diagonal(dim1=1, dim2=2).sqrt()
    )
    assert_close(actual.mean[0], exact.mean @ GENTLE.H.T)
    assert_close(actual.upper[0] - actual.mean[0], 1.6448536269514722 * spread)
    assert_close(actual.mean[0] - actual.lower[0], 1.6448536269514722 * spread)
