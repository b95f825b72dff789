import pytest
import torch
from support.runs.configured import F64, component, draw_normal, generator, load, normal
from support.series.small_sequences import run, system
from torch.testing import assert_close

from components.contracts.sequences import Observation
from components.series.filtering.losses import log_beta_likelihood
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams


def normal_density(y, mean, covariance):
    return torch.distributions.MultivariateNormal(mean, covariance).log_prob(y).exp()


@pytest.mark.parametrize("power", [1.0, 1.05, 1.5, 2.0])
def test_power_integral_matches_quadrature(power):
    s = system()
    x = draw_normal(3)
    grid = torch.linspace(-14, 14, 701, dtype=F64)
    y = torch.cartesian_prod(grid, grid) + s.H @ x
    quadrature = normal_density(y, s.H @ x, s.Sigma).pow(power).sum() * (grid[1] - grid[0]) ** 2
    got = LinearGaussianModule(s).log_power_integral(x.view(1, 1, 3), 1, power).exp()
    assert_close(got, quadrature, rtol=1e-8, atol=0)


@pytest.mark.parametrize("beta", [0.01, 0.1, 0.5, 1.0])
def test_beta_likelihood_equals_equation_6_6(beta):
    s = system()
    r = 2
    n = 5
    g = generator(0)
    x = normal(g, r, n, 3)
    y = 3 * normal(g, r, 2)
    got = log_beta_likelihood(LinearGaussianModule(s), Observation(1, y), x, beta)
    grid = torch.linspace(-14, 14, 401, dtype=F64)
    for i in range(r):
        for j in range(n):
            mean = s.H @ x[i, j]
            everywhere = normal_density(torch.cartesian_prod(grid, grid) + mean, mean, s.Sigma)
            integral = (everywhere ** (beta + 1)).sum() * (grid[1] - grid[0]) ** 2
            # log of eq. (6.6)
            printed = normal_density(y[i], mean, s.Sigma) ** beta / beta - integral / (beta + 1)
            assert_close(got[i, j] + 1 / beta - 1 / (beta + 1), printed, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_published_figure_is_reproduced():
    """Boustati Fig. 6.1 and Table D.1 at p_c = 0.1: NMSE about 10 and 100 times smaller than BPF
    and Kalman filter, and coverage near 0.9 for β in [0.01, 0.2]."""
    problem, rng = load("wiener_velocity", replicates=20)
    problem = problem.attack(component("attacker", "gaussian_contamination"), rng)
    model = component("model", "linear_gaussian_ssm").build(problem, rng)
    scores = {}
    for name in ("kalman", "bootstrap_filter"):
        posterior = run(component("inference", name), model, problem, Streams(1))
        scores[name] = problem.score(posterior, rng)
    for beta in (0.01, 0.1, 0.2):
        inference = component("inference", "beta_bootstrap_filter", beta=beta)
        scores[beta] = problem.score(run(inference, model, problem, Streams(1)), rng)
        assert 0.85 < scores[beta]["coverage90"].mean() < 0.95
        assert 0.86 < scores[beta]["medae"].mean() < 0.92
    best = scores[0.1]["nmse"].median()
    assert 5 < scores["bootstrap_filter"]["nmse"].median() / best < 20
    assert scores["kalman"]["nmse"].median() / best > 100
    assert abs(scores["kalman"]["medae"].mean() - 5.23) < 1
