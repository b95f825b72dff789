"""Probabilistic backpropagation: moments by quadrature, conjugate updates, and a learned
regression."""

import math

import pytest
import torch
from support.runs.configured import F64, double, normal
from support.small.small_problems import component, real
from torch.testing import assert_close

from components.inference.alpha.assumed_density import (
    Gamma,
    log_normal,
    relu_moments,
    update_gamma,
    update_prior,
)
from components.inference.alpha.pbp import propagate
from runner.execution.rng import Streams

PLAIN = {"activation": "relu", "widths": [4]}


def begin(n=20, seed=0, inference=None, **model):
    problem = real(n=n, n_tasks=1, missing=0.0)
    rng = Streams(seed)
    method = component("inference", "pbp", **(inference or {}))
    network = component("model", "mlp", **(PLAIN | model)).build(problem, rng)
    return method, method.init(network, problem, rng), problem, rng


@pytest.mark.parametrize(("m", "v"), [(0.3, 0.5), (-1.0, 2.0), (2.0, 0.1), (-4.0, 1.0)])
def test_relu_moments_match_integrals(m, v):
    x = torch.linspace(m - 12 * v**0.5, m + 12 * v**0.5, 200_001, dtype=F64)
    weight = torch.exp(-0.5 * (x - m) ** 2 / v)
    weight = weight / weight.sum()
    z = x.clamp_min(0)
    mean = float(weight @ z)
    moments = relu_moments(double(m), double(v))
    assert float(moments[0]) == pytest.approx(mean, rel=1e-6)
    assert float(moments[1]) == pytest.approx(float(weight @ (z - mean) ** 2), rel=1e-5)


def test_propagated_moments_match_draws():
    _, state, problem, _ = begin()
    generator = torch.Generator().manual_seed(0)
    x = problem.train.x[:3]
    variance = 0.05 + 0 * state.variance
    mean, spread = propagate(state.network, state.mean, variance, x)
    theta = state.mean + variance.sqrt() * normal(generator, 20_000, len(state.mean))
    (W1, b1), (W2, b2) = state.network.layers(theta)
    h = ((W1 @ x.T).transpose(1, 2) + b1[:, None]) / math.sqrt(x.shape[1] + 1)
    f = (h.clamp_min(0) @ W2.transpose(1, 2) + b2[:, None])[..., 0] / math.sqrt(5)
    error = f.std(0) / 20_000**0.5
    assert ((f.mean(0) - mean[:, 0]).abs() < 5 * error).all()
    assert_close(f.var(0), spread[:, 0], rtol=0.06, atol=0)


def test_linear_update_is_bayes_rule():
    """Without hidden units the update has the exact posterior's means and variances."""
    method, state, problem, _ = begin(widths=[])
    x = problem.train.x[:1]
    y = float(problem.train.y[0, 0])
    a = torch.cat([x[0], torch.ones(1, dtype=F64)]) / math.sqrt(x.shape[1] + 1)
    noise = state.noise.b / (state.noise.a - 1)
    precision = (1 / state.variance).diag() + torch.outer(a, a) / noise
    mean = torch.linalg.solve(precision, state.mean / state.variance + a * y / noise)
    new_state, log_z = method.observe(state, x, y)
    assert_close(new_state.mean, mean)
    assert_close(new_state.variance, torch.linalg.inv(precision).diagonal())
    total = float(a.square() @ state.variance) + noise
    assert log_z == pytest.approx(log_normal(y - float(a @ state.mean), total))


def test_gamma_update_has_tilted_moments():
    """E[γ] = Z₁/Z a/b and E[γ²] = Z₂/Z a(a + 1)/b² of the updated Gamma; a small residual raises
    the precision, a large one lowers it."""
    q = Gamma(6.0, 5.0)
    z = [math.exp(log_normal(0.4, 0.3 + q.b / (q.a + k - 1))) for k in range(3)]
    new = update_gamma(q, 0.4, 0.3)
    assert new.a / new.b == pytest.approx(z[1] / z[0] * q.a / q.b)
    second = z[2] / z[0] * q.a * (q.a + 1) / q.b**2
    assert new.a * (new.a + 1) / new.b**2 == pytest.approx(second)
    assert update_gamma(q, 0.0, 0.1).mean > q.mean > update_gamma(q, 3.0, 0.1).mean


def test_prior_factor_is_included_once():
    """The cavity times N(w | 0, 1/λ) at E[1/λ]; a second update of the same factor changes
    nothing."""
    weight = Gamma(50.0, 40.0)
    mean, variance, new, site = update_prior(0.8, 0.5, weight, [0.0, 0.0, 0.0, 0.0])
    prior = weight.b / (weight.a - 1)
    precision = 1 / 0.5 + 1 / prior
    assert (mean, variance) == pytest.approx((0.8 / 0.5 / precision, 1 / precision))
    repeat = update_prior(mean, variance, new, site)
    assert repeat[:2] == pytest.approx((mean, variance))
    assert (repeat[2].a, repeat[2].b) == pytest.approx((new.a, new.b))
    assert repeat[3] == pytest.approx(site)


def test_regression_and_its_noise_are_learnt():
    method, state, problem, rng = begin(n=60, widths=[10])
    values = []
    for _ in range(12):
        state, info = method.step(state, problem.train, rng)
        values.append(info["log_likelihood"])
    assert values[-1] > values[0] + 4
    predicted = method.posterior(state).predict(problem.test.x, torch.Generator())
    error = (predicted.mean - problem.test.y).square().mean().sqrt()
    assert error < 0.7 * float(problem.test.y.std())
    assert (predicted.variance > state.noise.b / (state.noise.a - 1)).all()
    assert (state.variance > 0).all()
