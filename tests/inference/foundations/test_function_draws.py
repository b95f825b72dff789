"""Draws of functions: distributions of their values, of conditionals, and of slopes of deep
functions."""

import math
from dataclasses import replace

import pytest
import torch
from support.runs.configured import component, double
from support.small.shallow_gp_problems import F64, problem, streams
from support.small.small_problems import train

from components.contracts.predictive import components_of
from components.inference.foundations.function_draws import DrawnFunctions

DEEP = {
    "inner_dim": 1,
    "inner_kernel": "squared_exponential",
    "inner_lengthscale": 1.0,
    "inner_variance": 1.0,
    "inner_mean": "zero",
    "top_kernel": "squared_exponential",
    "top_lengthscale": 1.0,
    "top_variance": 1.0,
    "n_inducing": 4,
    "jitter": 1e-8,
}


def one_input():
    """Six labels of one task at one input."""
    data = problem(T=1, D=3, keep=1.0, n=6)
    train, test = (replace(rows, x=rows.x[:, :1]) for rows in (data.train, data.test))
    return replace(data, train=train, test=test)


def draws(module, x, n, conditional=False):
    generator = streams().noise
    draw = module.sample_f if conditional else module.sample_prior_f
    return torch.stack([components_of(draw(x, generator))[0, :, 0] for _ in range(n)])


def assert_moments(f, mean, K):
    """Mean and covariance of draws f [S, n] within four standard errors."""
    z = torch.linalg.solve_triangular(torch.linalg.cholesky(K), (f - mean).T, upper=False)
    n = len(f)
    assert z.mean(1).abs().max() < 4 / math.sqrt(n)
    covariance = z @ z.T / n
    assert (covariance - torch.eye(len(K), dtype=F64)).abs().max() < 6 / math.sqrt(n)


def test_one_layer_draws_match_gaussian_process():
    data = one_input()
    module = component("model", "idgp", depth=0, **DEEP).build(data, streams())
    x = double([[-1.0], [0.3], [2.0]])
    K = torch.exp(-0.5 * (x - x.T).square())
    f = draws(module, x, 400)
    assert_moments(f, torch.zeros(3, dtype=F64), K)
    with pytest.raises(AssertionError):  # another lengthscale
        assert_moments(f, torch.zeros(3, dtype=F64), torch.exp(-0.1 * (x - x.T).square()))


def test_conditional_draws_match_equations():
    """Equations (2.15) to (2.17): K_** − K_*x (K + σ²)⁻¹ K_x*."""
    data = one_input()
    keys = {"kernel": "squared_exponential", "lengthscale": 1.0, "variance": 2.0}
    module = component("model", "igp", noise_variance=0.3, **keys).build(data, streams())
    x = double([[-0.4], [0.9], [3.0]])
    X = data.train.x

    def k(a, b):
        return 2.0 * torch.exp(-0.5 * (a - b.T).square())

    system = k(X, X) + (0.3 + module.jitter) * torch.eye(len(X), dtype=F64)
    gain = k(x, X) @ torch.linalg.inv(system)
    f = draws(module, x, 400, conditional=True)
    assert_moments(f, (gain @ data.train.y)[:, 0], k(x, x) - gain @ k(X, x))


def test_deep_slopes_are_products_of_normals():
    """For L layers of unit slope, E ln|f′| = −L (γ + ln 2)/2 with s.d. π (L/8)^½: functions flatten
    with depth."""
    data = one_input()
    x = double([[0.0], [1e-3]])
    for depth in (0, 2):
        keys = DEEP | {"jitter": 1e-13}
        module = component("model", "idgp", depth=depth, **keys).build(data, streams())
        f = draws(module, x, 600)
        logs = (f.diff()[:, 0] / 1e-3).abs().log()
        L = depth + 1
        sd = math.pi * math.sqrt(L / 8)
        assert logs.mean() == pytest.approx(-0.635181 * L, abs=4 * sd / math.sqrt(600))
        assert logs.std() == pytest.approx(sd, rel=0.15)


def test_identity_mean_prevents_flattening():
    data = one_input()
    flat = {}
    for mean, variance in (("zero", 1.0), ("linear", 0.05)):
        keys = DEEP | {"depth": 4, "inner_mean": mean, "inner_variance": variance}
        model = component("model", "idgp", **keys).build(data, streams())
        inference = component("inference", "function_draws", points=60)
        state, _ = train(inference, model, data, 20)
        posterior = inference.posterior(state)
        assert isinstance(posterior, DrawnFunctions)
        flat[mean] = posterior.scores()["flat_share"]
        assert set(posterior.figures()) == {"functions"}
    assert flat["linear"] < flat["zero"]


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "cmdgp", "collapsed_mdgp", "cgp"])
def test_every_family_draws_tasks(name):
    data = problem(T=2, keep=1.0)
    module = component("model", name, n_inducing=4).build(data, streams())
    f = components_of(module.sample_prior_f(data.test.x, streams().noise))
    assert f.shape == (1, len(data.test.x), 2)
    assert f.isfinite().all()
