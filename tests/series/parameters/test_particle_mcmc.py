"""Particle marginal Metropolis–Hastings compared with exact posteriors by the Kalman filter on a
grid, for any number of particles."""

import pytest
import torch
from support.runs.configured import F64, component, double
from support.small.small_problems import advance
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

from components.errors import NumericalError
from components.posteriors.draws import Draws
from components.posteriors.mixing import inner_filter_checks
from components.series.parameters.particle_mcmc import ParticleMCMC
from components.series.parameters.passes import passing, trajectories
from runner.execution.rng import Streams


def method(particles, chains, warmup, kind=ParticleMCMC, beta=None, **keys):
    keys |= {"filter": build_filter(particles, beta), "chains": chains, "warmup": warmup}
    return kind(**dict(component("inference", "particle_mcmc", **keys)))


def sample(problem, inference, steps, built=None, seed=2):
    rng = Streams(seed)
    state = inference.init(built or model(problem), problem, rng)
    return inference.posterior(advance(inference, state, problem, rng, 0, steps)[0])


class MadeAnew(ParticleMCMC):
    """Broken: Monte Carlo within Metropolis, which re-estimates the likelihood of the current state
    at every step."""

    def step(self, state, batch, rng):
        state.value = self._evaluate_proposal(state.model, state.problem, state.theta, rng).value
        return super().step(state, batch, rng)


def off_by(problem, inference, steps):
    """z-scores of the means over chains of first and second moments of the parameters of each
    replicate; chains are independent."""
    posterior = sample(problem, inference, steps).parameters
    worst = []
    for r in range(problem.replicates):
        problem_r = series(problem.replicates)
        problem_r.observations = problem.observations[r : r + 1]
        mean, sd, _ = exact(problem_r)
        values = posterior.select_replicate(r).values  # [C, N, 2]
        worst.append(z_score(values.mean(1), mean))
        worst.append(z_score((values - mean).square().mean(1), sd.square()))
    return torch.stack(worst)


@pytest.mark.parametrize(("kind", "right"), [(ParticleMCMC, True), (MadeAnew, False)])
def test_posterior_is_exact_with_few_particles(kind, right):
    """Four particles: the likelihood estimates are so noisy that an approximately correct sampler
    has large errors."""
    problem = series(1)
    z = off_by(problem, method(4, 150, 60, kind), 190 if right else 110)
    assert (z.abs().max() < 4) if right else (z.abs().max() > 7), z


@pytest.mark.slow
@pytest.mark.parametrize(("particles", "target"), [(4, 0.07), (20, 0.234), (200, 0.234)])
def test_posterior_is_exact_for_any_number_of_particles(particles, target):
    inference = method(particles, 150, 200, target_acceptance=target)
    assert off_by(series(2), inference, 1000).abs().max() < 4


def test_chains_of_a_replicate_learn_one_step_size():
    """With separate step sizes, a chain stuck at too high an estimate would shrink its own, which
    biases the result."""
    problem = series(2)
    rng = Streams(0)
    inference = method(4, 20, 30)
    state = inference.init(model(problem), problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, 12)
    steps = state.proposal.log_step  # [R, C]
    assert steps.shape == (2, 20)
    assert torch.equal(steps, steps[:, :1].expand(2, 20))
    assert steps[0, 0] != steps[1, 0]


def test_generalised_posterior_keeps_scale_dependent_integrals():
    problem = series(1, n_steps=8, missing=0.0, seed=5)
    problem.observations[0, 3] += 8.0
    mean, sd = generalised_moments(problem, 0.3)
    without, _ = generalised_moments(problem, 0.3, integral=False)
    assert abs(without - mean) > 0.2 * sd
    inference = method(8, 150, 50, beta=0.3)
    built = model(problem, both=False)
    posterior = sample(problem, inference, 160, built).parameters
    chains = posterior.values[..., 0].mean(1)
    assert abs(z_score(chains, mean)) < 4
    assert abs(z_score(chains, without)) > 8
    assert abs(z_score((posterior.values[..., 0] - mean).square().mean(1), sd**2)) < 4


def test_trajectories_follow_the_smoothing_distribution():
    """For one common θ: means and squares of x_t | y_1:T of the joint Gaussian."""
    problem = series(1, n_steps=6)
    many = repeat_series(problem, 3000)
    built = model(problem)
    conditional = built.at(double([[0.1, -0.6]]).expand(3000, -1))
    rng = Streams(0)
    passes = passing(
        component("inference", "bootstrap_filter", particles=150), conditional, many, 6, rng
    )
    path = trajectories(conditional, [state.weighted for state in passes], rng.noise)[..., 0]
    v, q = torch.tensor([0.1, -0.6]).mul(2).exp().tolist()
    times = torch.arange(1.0, 7, dtype=F64)
    walk = float(built.P0) + q * torch.minimum(times[:, None], times)  # of x_1 … x_6
    y = problem.observations[0, :, 0]
    is_observed = ~y.isnan()
    noisy = walk[is_observed][:, is_observed] + v * torch.eye(int(is_observed.sum()), dtype=F64)
    gain = torch.linalg.solve(noisy, walk[is_observed]).T
    mean = gain @ y[is_observed]
    covariance = walk - gain @ walk[is_observed]
    sd = covariance.diagonal().sqrt()
    # 150 particles have a bias comparable to their variance
    assert ((path.mean(0) - mean) / sd).abs().max() < 0.08
    assert (path.std(0) / sd - 1).abs().max() < 0.06
    lagged = ((path[:, :-1] - mean[:-1]) * (path[:, 1:] - mean[1:])).mean(0)
    assert_close(lagged, covariance.diagonal(1), rtol=0.12, atol=0.0)


def test_step_with_a_failed_filter_is_rejected():
    class Failing(ParticleMCMC):
        def _evaluate_proposal(self, model, problem, theta, rng):
            if torch.equal(theta, begun):
                return super()._evaluate_proposal(model, problem, theta, rng)
            raise NumericalError("weights", "mend")

    problem = series(2)
    inference = method(5, 2, 0, Failing)
    begun = model(problem).draw_prior(4, Streams(2).init)
    posterior = sample(problem, inference, 3)
    assert torch.equal(posterior.parameters.draws, begun.unsqueeze(1).expand(-1, 3, -1))


@pytest.mark.parametrize(("outlier", "passed"), [(0.0, True), (1e4, False)])
def test_collapsed_filters_of_draws_fail_a_check(outlier, passed):
    problem = series(2)
    problem.observations[:, 2] += outlier
    posterior = sample(problem, method(50, 2, 0), 6).parameters
    ess = posterior.stats["filter_ess"]
    assert ess.shape == posterior.draws.shape[:2]
    assert ((ess >= 1 - 1e-9) & (ess <= 50 + 1e-9)).all()
    (check,) = inner_filter_checks(posterior)
    assert check.passed is passed
    assert inner_filter_checks(Draws(posterior.draws, posterior.start)) == []


def test_draws_after_warm_up_are_kept_and_scored():
    problem = series(3)
    assert problem.score(sample(problem, method(5, 2, 6), 6), Streams(0)) == {}
    posterior = sample(problem, method(5, 2, 6, thinning=2), 20)
    assert posterior.parameters.draws.shape == (6, 7, 2)
    assert posterior.parameters.stats["lp"].shape == (6, 7)
    scores = problem.score(posterior, Streams(0))
    names = "nmse coverage90 ess rhat mean/state_sd error/state_sd coverage90/observation_sd"
    assert {*names.split()} <= set(scores)
    assert all(value.shape == (3,) for value in scores.values())
    assert_close(scores["error/state_sd"], (scores["mean/state_sd"] - 0.4).abs())
