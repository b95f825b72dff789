"""Extended and unscented Kalman filters: linear models, a nonlinear model compared with a grid, and
literal algorithms."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load, normal
from support.series.small_sequences import gappy, run, run_filter, sequence, system
from torch.testing import assert_close

from components.contracts.sequences import Observation
from components.errors import ConfigMismatchError, NumericalError
from components.series.gaussian_filtering.linearisation import tangent
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import Sequence
from runner.execution.rng import Streams

NAMES = ("extended_kalman", "unscented_kalman")


class Opaque:
    """A linear model with only ``AdditiveGaussian``: A and H are not accessible."""

    def __init__(self, s):
        self._A = s.A
        self._H = s.H
        self.Q = s.Q
        self.Sigma = s.Sigma
        self.m0 = s.m0
        self.P0 = s.P0

    def transition_mean(self, x, t):
        return x @ self._A.T

    def observation_mean(self, x, t):
        return x @ self._H.T


class Sine:
    """x_t = x_{t−1} + 0.4 sin x_{t−1} + N(0, q), y_t = sin x_t + x_t/2 + N(0, s), with moderate
    slopes."""

    Q = double([[0.02]])
    Sigma = double([[0.05]])
    m0 = double([0.7])
    P0 = double([[0.1]])

    def transition_mean(self, x, t):
        return x + 0.4 * torch.sin(x)

    def observation_mean(self, x, t):
        return torch.sin(x) + 0.5 * x


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *((name, {}) for name in NAMES),
        ("unscented_kalman", {"alpha": 0.5, "beta": 2.0, "kappa": 0.0}),
        ("unscented_kalman", {"alpha": 1.0, "beta": 0.0, "kappa": 1.0}),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("opaque", [False, True])
def test_linear_model_gives_kalman_filter(name, keys, apart, opaque):
    problem = gappy(7, 2, apart)
    linear = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", problem)
    actual = run_filter(name, problem, Opaque(problem.system) if opaque else linear, **keys)
    for field in ("mean", "variance", "lower", "upper", "predicted", "log_normaliser"):
        assert_close(vars(actual)[field], vars(exact)[field], rtol=1e-10, atol=1e-10)
    assert actual.evidence is not opaque


def nonlinear(times=25):
    """Two series of the sine model, some observations missing."""
    g = generator(5)
    model = Sine()
    x = model.m0 + model.P0[0].sqrt() * normal(g, 2, 1)
    states = []
    observations = []
    for t in range(times):
        x = model.transition_mean(x, t) + model.Q[0].sqrt() * normal(g, 2, 1)
        noise = model.Sigma[0].sqrt() * normal(g, 2, 1)
        states.append(x)
        observations.append(model.observation_mean(x, t) + noise)
    problem = Sequence("sine", torch.stack(states, 1), torch.stack(observations, 1), None, ["x"])
    problem.observations[:, 4] = math.nan
    problem.observations[1, 9:12] = math.nan
    return problem


def test_jacobian_matches_differences():
    def f(x):
        return torch.stack(
            [x[..., 0] * x[..., 1].sin(), x[..., 2].square(), x.sum(-1).exp() / 9, x[..., 0]], -1
        )

    x = double([[0.3, -0.4, 0.9], [1.1, 0.2, -0.5]])
    value, J = tangent(f, x, 4)
    assert_close(value, f(x))
    for j in range(3):
        step = 1e-6 * torch.eye(3, dtype=F64)[j]
        assert_close(J[..., j], (f(x + step) - f(x - step)) / 2e-6, rtol=1e-7, atol=1e-8)


def test_extended_step_matches_algorithm_5_4():
    problem = nonlinear()
    model = Sine()
    actual = run_filter("extended_kalman", problem, model)
    m = model.m0[0]
    P = model.P0[0, 0]
    for t in range(4):
        F = 1 + 0.4 * torch.cos(m)
        m = m + 0.4 * torch.sin(m)
        P = F * P * F + model.Q[0, 0]
        H = torch.cos(m) + 0.5
        S = H * P * H + model.Sigma[0, 0]
        K = P * H / S
        m = m + K * (problem.observations[0, t, 0] - torch.sin(m) - 0.5 * m)
        P = P - K * S * K
        assert_close(actual.mean[0, t, 0], m)
        assert_close(actual.variance[0, t, 0], P)


def test_unscented_step_matches_algorithm_5_14():
    problem = nonlinear()
    model = Sine()
    alpha = 0.8
    beta = 1.5
    kappa = 0.5
    keys = {"alpha": alpha, "beta": beta, "kappa": kappa}
    actual = run_filter("unscented_kalman", problem, model, **keys)
    n = 1
    lam = alpha**2 * (n + kappa) - n
    wm = double([lam / (n + lam), 1 / (2 * (n + lam)), 1 / (2 * (n + lam))])
    wc = wm + double([1 - alpha**2 + beta, 0, 0])
    sign = double([0.0, 1.0, -1.0])
    m = model.m0[0]
    P = model.P0[0, 0]
    for t in range(4):
        propagated = model.transition_mean(m + math.sqrt(n + lam) * P.sqrt() * sign, t)
        m = (wm * propagated).sum()
        P = (wc * (propagated - m).square()).sum() + model.Q[0, 0]
        points = m + math.sqrt(n + lam) * P.sqrt() * sign
        projected = model.observation_mean(points, t)
        expected = (wm * projected).sum()
        S = (wc * (projected - expected).square()).sum() + model.Sigma[0, 0]
        C = (wc * (points - m) * (projected - expected)).sum()
        m = m + C / S * (problem.observations[0, t, 0] - expected)
        P = P - C / S * S * C / S
        assert_close(actual.mean[0, t, 0], m)
        assert_close(actual.variance[0, t, 0], P)


@pytest.mark.parametrize("name", NAMES)
def test_covariances_stay_positive_definite(name):
    """Precise observations of a nonlinear growth model at 200 times, in float32."""
    problem, rng = load("nonlinear_growth", replicates=8, n_steps=200, dtype=torch.float32)
    model = component("model", "nonlinear_growth").build(problem, rng)
    actual = run(component("inference", name), model, problem, rng)
    assert actual.variance.dtype == torch.float32
    assert torch.isfinite(actual.mean).all()
    assert (actual.variance > 0).all()


@pytest.mark.parametrize("name", [*NAMES, "wolf_filter", "kalman"])
def test_step_is_differentiable_in_observation(name):
    problem = sequence(system(), 3, 2)
    linear = LinearGaussianModule(system())
    inference = component("inference", name)

    def last_mean(y):
        state = inference.init(linear, problem, Streams(0))
        for t in range(3):
            missing = torch.tensor([False, t == 1])
            observed = torch.where(missing.unsqueeze(1), math.nan, y[:, t])
            batch = Observation(t + 1, observed, None, missing if t == 1 else None)
            state, _ = inference.step(state, batch, Streams(0))
        return state.m.sum() + state.filtered.log_normaliser.sum()

    apart = problem.observations.clone()
    # one replicate lacks one observation, so that covariances differ
    problem.observations[1, 1] = math.nan
    y = apart.requires_grad_()
    (gradient,) = torch.autograd.grad(last_mean(y), y)
    assert torch.isfinite(gradient).all()
    assert (gradient[1, 1] == 0).all()
    step = torch.zeros_like(apart)
    step[0, 0, 1] = 1e-6
    with torch.no_grad():
        difference = (last_mean(apart + step) - last_mean(apart - step)) / 2e-6
    assert float(gradient[0, 0, 1]) == pytest.approx(float(difference), rel=1e-6)


def test_invalid_settings_are_refused():
    problem = gappy(5, 1, False)
    model = Opaque(system())
    with pytest.raises(
        ConfigMismatchError, match=r"inference\.kappa = -3: n \+ κ must be positive"
    ):
        run_filter("unscented_kalman", problem, model, kappa=-3.0)
    model.Sigma = -model.Sigma
    with pytest.raises(NumericalError, match="Σ is not positive definite"):
        run_filter("extended_kalman", problem, model)
