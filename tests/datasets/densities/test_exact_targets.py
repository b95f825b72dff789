import math

import pytest
import torch
from support.runs.configured import component, double, draw_normal, load
from support.targets.known_targets import F64, sample_target
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

MODEL = "target_density"


def density_of_z(z):
    """Literal p(z) = Σ π_i λ_i exp(−λ_i z)."""
    return sum(p * rate * torch.exp(-rate * z) for p, rate in ((1 / 3, 1.5), (2 / 3, 0.5)))


def test_exponentials_equal_mixture_with_jacobian():
    problem, _ = load("mixture_of_exponentials")
    y = torch.linspace(-4, 3, 20, dtype=F64).unsqueeze(1)
    z = problem.constrain(y)
    # |dz/dy| = z
    assert_close(problem.log_density(y).exp(), (density_of_z(z) * z)[:, 0])


def test_exponential_moments_match_quadrature_and_print():
    problem, _ = load("mixture_of_exponentials")
    y = torch.linspace(-30, 6, 200_001, dtype=F64).unsqueeze(1)
    mass = problem.log_density(y).exp() * (y[1] - y[0])
    z = problem.constrain(y)[:, 0]
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    for n, exact in ((1, problem.mean), (2, problem.second_moment)):
        printed = sum(p * math.factorial(n) / rate**n for p, rate in ((1 / 3, 1.5), (2 / 3, 0.5)))
        assert_close(float(exact), printed)
        assert (mass * z**n).sum() == pytest.approx(printed, abs=1e-7)


def test_weights_are_shares():
    problem, _ = load("mixture_of_exponentials")
    other, _ = load("mixture_of_exponentials", weights=[10.0, 20.0])
    assert_close(problem.mean, other.mean)


def test_exponential_draws_are_scored_as_parameters():
    problem, rng = load("mixture_of_exponentials")
    model = component("model", MODEL).build(problem, rng)
    draws = sample_target(
        "sgld", model, 40, problem=problem, burn_in=10, thinning=5, chains=8, step_size=0.05
    )
    assert (draws.values > 0).all()
    scores = problem.score(draws, rng)
    assert_close(scores["mean/z"], float(draws.draws.exp().mean()))
    assert_close(scores["sd/z"], float(draws.draws.exp().std(correction=0)))
    literal = sum(abs(float(c.exp().mean()) - 14 / 9) for c in draws.draws) / 8
    assert_close(scores["error_mean_of_a_chain"], literal)
    assert "trace" in problem.draw(draws, rng)


def test_gaussian_equals_torch():
    keys = {"dim": 3, "mean": [1.0, 0.0, -1.0], "sd": [1.0, 2.0, 0.5], "correlation": 0.3}
    problem, _ = load("gaussian", **keys)
    sd = double(keys["sd"])
    covariance = sd.unsqueeze(1) * (0.3 + 0.7 * torch.eye(3, dtype=F64)) * sd
    exact = MultivariateNormal(double(keys["mean"]), covariance)
    theta = draw_normal(7, 3)
    assert_close(problem.log_density(theta), exact.log_prob(theta))
    assert_close(problem.mean, exact.mean)
    assert_close(problem.second_moment, exact.variance + exact.mean**2)


def test_samplers_start_at_the_initial_point_of_the_gaussian():
    problem, rng = load("gaussian", start_mean=[3.0, -1.0], start_sd=0.5)
    start = problem.sample_prior(20_000, rng.init)
    assert_close(start.mean(0), double([3.0, -1.0]), atol=0.02, rtol=0)
    assert_close(start.std(0), torch.full((2,), 0.5, dtype=F64), atol=0.01, rtol=0)


def test_planar_gaussian_figure_shows_few_particle_paths():
    problem, rng = load("gaussian")
    model = component("model", MODEL).build(problem, rng)
    few = sample_target("svgd", model, 10, problem=problem, burn_in=0, thinning=1, chains=6)
    many = sample_target("svgd", model, 10, problem=problem, burn_in=0, thinning=1, chains=60)
    assert "trajectories" in problem.draw(few, rng)
    assert "trajectories" not in problem.draw(many, rng)
