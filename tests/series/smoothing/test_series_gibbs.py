"""Gibbs sampling over a complete series compared with the Kalman smoother and numerical
integration."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load, normal
from support.small.small_problems import advance
from support.targets.known_targets import z_score
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.contracts.sequences import Series
from components.errors import NumericalError
from components.series.structural.local_level import LocalLevelConditionals
from runner.execution.rng import Streams

FIXED = (0.8, 0.3)  # σ²_ε, σ²_η


def walk_covariance(n, q, p0):
    """Cov(μ_s, μ_t) = P_0 + min(s, t) σ²_η of a random walk, s and t = 0 … n."""
    times = torch.arange(n + 1, dtype=F64)
    return p0 + q * torch.minimum(times[:, None], times)


def smooth(y, v, q, m0, p0):
    """Mean, variance and Cov(μ_t, μ_t+1) of μ_t | y_1:T, t = 0 … T, of the joint Gaussian."""
    C = walk_covariance(len(y), q, p0)
    is_observed = ~y.isnan()
    noisy = C[1:, 1:][is_observed][:, is_observed] + v * torch.eye(
        int(is_observed.sum()), dtype=F64
    )
    gain = torch.linalg.solve(noisy, C[1:][is_observed]).T
    covariance = C - gain @ C[1:][is_observed]
    return m0 + gain @ (y[is_observed] - m0), covariance.diagonal(), covariance.diagonal(1)


def log_evidence(y, v, q, m0, p0):
    """log p(y_1:T | σ²_ε, σ²_η), for arrays of any shape."""
    is_observed = ~y.isnan()
    C = walk_covariance(len(y), q[..., None, None], p0)[..., 1:, 1:][..., is_observed, :][
        ..., is_observed
    ]
    noisy = C + v[..., None, None] * torch.eye(int(is_observed.sum()), dtype=F64)
    return MultivariateNormal(torch.full_like(y[is_observed], m0), noisy).log_prob(y[is_observed])


def problem_and_model(replicates=2, n_steps=12, **keys):
    problem, rng = load("local_level", 1, replicates, n_steps=n_steps, missing=0.2)
    return problem, component("model", "local_level", **keys).build(problem, rng)


def start_of(model):
    """Mean and variance of μ_0."""
    return model.prior.initial_mean, model.prior.initial_sd**2


class Fixed:
    """The conditionals of a model with known parameters."""

    def __init__(self, model):
        self.model = model
        self.parameter_names = model.parameter_names
        self.state_dim = model.state_dim

    def start(self, series, chains, generator):
        return series.y.new_tensor(FIXED).expand(len(series.y), chains, 2).clone()

    def draw_states(self, series, theta, generator):
        return self.model.draw_states(series, theta, generator)

    def draw_parameters(self, series, states, theta, generator):
        return theta


class DrawnForwards(Fixed):
    """Broken: each state is drawn from its filtering distribution, without later observations."""

    def draw_states(self, series, theta, generator):
        v, q = theta.unbind(-1)
        m, p = (torch.full_like(v, start) for start in start_of(self.model))
        drawn = []
        for t in range(series.y.shape[1] + 1):
            if t:
                p = p + q
                is_observed = ~series.missing[:, t - 1, None]
                gain = torch.where(is_observed, p / (p + v), 0.0)
                m = m + torch.where(is_observed, gain * (series.y[:, t - 1] - m), 0.0)
                p = (1 - gain) * p
            drawn.append(m + p.sqrt() * torch.randn(m.shape, generator=generator, dtype=m.dtype))
        return torch.stack(drawn, -1).unsqueeze(-1)


def swept(problem, conditionals, steps, chains, burn_in=0, thinning=1):
    keys = {"chains": chains, "burn_in": burn_in, "thinning": thinning}
    inference = component("inference", "series_gibbs", **keys)
    rng = Streams(2)
    state = inference.init(conditionals, problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, steps)
    return state, inference.posterior(state)


def against_smoother(conditionals, problem, model):
    """Largest |z| over replicates and times of means, squares and products of neighbours, for
    independent draws with fixed θ."""
    state, _ = swept(problem, conditionals(model), steps=10, chains=400)
    draws = state.kept_states.stack_rows(2).flatten(1, 2)[..., 0]  # [R, C·N, T]
    worst = []
    for r in range(problem.replicates):
        mean, variance, lagged = smooth(problem.observations[r, :, 0], *FIXED, *start_of(model))
        off = draws[r] - mean[1:]
        worst += [z_score(draws[r], mean[1:]), z_score(off.square(), variance[1:])]
        worst.append(z_score(off[:, :-1] * off[:, 1:], lagged[1:]))
    return torch.cat(worst).abs().max()


def test_states_have_the_moments_of_the_kalman_smoother():
    problem, model = problem_and_model()
    assert problem.missing.any()
    assert against_smoother(Fixed, problem, model) < 4.5
    assert against_smoother(DrawnForwards, problem, model) > 15


def test_summaries_equal_those_of_the_smoother():
    problem, model = problem_and_model()
    _, posterior = swept(problem, Fixed(model), steps=10, chains=400)
    for r in range(2):
        mean, variance, _ = smooth(problem.observations[r, :, 0], *FIXED, *start_of(model))
        sd = variance[1:].sqrt()
        assert_close(posterior.mean[r, :, 0], mean[1:], atol=0.1, rtol=0)
        assert_close(posterior.variance[r, :, 0].sqrt(), sd, atol=0.05, rtol=0)
        assert_close(posterior.upper[r, :, 0], mean[1:] + 1.645 * sd, atol=0.12, rtol=0)
        assert_close(posterior.lower[r, :, 0], mean[1:] - 1.645 * sd, atol=0.12, rtol=0)


def test_variances_follow_their_inverse_gammas():
    problem, model = problem_and_model(
        observation_shape=5.0, observation_scale=2.0, level_shape=6.0, level_scale=0.7
    )
    g = generator()
    ((_, series),) = problem.batches("series", Streams(0), 0, 1)
    states = normal(g, 2, 1, 13, 1).expand(-1, 40_000, -1, -1)
    theta = torch.ones(2, 40_000, 2, dtype=F64)
    drawn = model.draw_parameters(series, states, theta, g)
    for r in range(2):
        level = states[r, 0, :, 0]
        is_observed = ~problem.missing[r]
        residuals = (problem.observations[r, :, 0] - level[1:])[is_observed]
        a = double([5.0 + int(is_observed.sum()) / 2, 6.0 + 12 / 2])
        b = double([2.0, 0.7])
        b = b + torch.stack([residuals.square().sum(), level.diff().square().sum()]) / 2
        assert z_score(drawn[r], b / (a - 1)).abs().max() < 4
        assert z_score(1 / drawn[r], a / b).abs().max() < 4


def exact_means(y, model):
    """E[log σ²_ε | y], E[log σ²_η | y] on a grid of the two logarithms."""
    grid = torch.linspace(-6, 4, 301, dtype=F64)
    log_v, log_q = torch.meshgrid(grid, grid, indexing="ij")
    log_p = log_evidence(y, log_v.exp(), log_q.exp(), *start_of(model))
    for log_s, shape, scale in zip((log_v, log_q), model.shape, model.scale, strict=True):
        # density of log σ², with dσ² = σ² d log σ²
        log_p = log_p - shape * log_s - scale * torch.exp(-log_s)
    w = (log_p - log_p.max()).exp()
    return torch.stack([(w * log_v).sum(), (w * log_q).sum()]) / w.sum()


class OneObservationTooMany(LocalLevelConditionals):
    """Broken: missing observations count as observed."""

    def draw_parameters(self, series, states, theta, generator):
        filled = torch.where(series.missing.unsqueeze(-1), states[:, 0, 1:], series.y)
        return super().draw_parameters(Series(filled), states, theta, generator)


@pytest.mark.parametrize(
    ("conditionals", "right"), [(LocalLevelConditionals, True), (OneObservationTooMany, False)]
)
def test_sampler_has_the_exact_posterior_of_the_variances(conditionals, right):
    """2,000 independent chains after 60 sweeps, which forget their start."""
    problem, model = problem_and_model(replicates=2, n_steps=8, level_scale=0.5)
    state, _ = swept(problem, conditionals(model.prior), steps=60, chains=2000, burn_in=59)
    means = [exact_means(y, model) for y in problem.observations[..., 0]]
    z = [z_score(log_theta, mean) for log_theta, mean in zip(state.theta.log(), means, strict=True)]
    assert (torch.cat(z).abs().max() < 4) == right, z


def test_draws_are_kept_and_scored_after_burn_in():
    problem, model = problem_and_model(replicates=3)
    _, early = swept(problem, model, steps=4, chains=2, burn_in=4)
    assert problem.score(early, Streams(0)) == {}
    assert problem.draw(early, Streams(0)) == {}
    state, posterior = swept(problem, model, steps=20, chains=2, burn_in=4, thinning=3)
    assert len(state.kept) == 5
    scores = problem.score(posterior, Streams(0))
    kept = state.kept.stack_rows(2)  # [R, C, N, P]
    assert_close(scores["mean/level_variance"], kept[..., 1].mean((1, 2)))
    assert {"nmse", "coverage90", "ess", "rhat", "missing", "nmse/level"} <= set(scores)
    assert all(value.shape == (3,) for value in scores.values())
    assert_close(posterior.parameters.select_replicate(1).values, kept[1])
    assert set(problem.draw(posterior, Streams(0))) == {"states", "coverage"}


def test_non_finite_values_are_named():
    problem, model = problem_and_model()

    class Lost(Fixed):
        def draw_parameters(self, series, states, theta, generator):
            return theta * math.inf

    with pytest.raises(NumericalError, match="change the priors"):
        swept(problem, Lost(model), steps=1, chains=2)


def test_only_the_conditionals_of_a_model_are_required():
    """``Fixed`` has only the members of the protocol; the intervals of a known model have their
    nominal coverage."""
    sd = {"observation_sd": math.sqrt(FIXED[0]), "level_sd": math.sqrt(FIXED[1])}
    problem, rng = load("local_level", 5, 60, n_steps=30, **sd)
    model = component("model", "local_level").build(problem, rng)
    _, posterior = swept(problem, Fixed(model), steps=40, chains=4)
    assert abs(z_score(problem.score(posterior, rng)["coverage90"], 0.9)) < 4
