"""The Gaussian-process state-space model: its literal density, the linear kernel compared with
quadrature over its coefficients, forecasts, and effects of mistakes."""

import math
from functools import cache

import pytest
import torch
from support.runs.configured import component, double, draw_normal, load
from support.small.small_problems import advance
from support.targets.recipe import F64, mutate_component
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from components.contracts.sequences import Series
from components.series.forecast_data.kink import kink
from components.series.models import gp_ssm
from components.series.sequence import Sequence
from runner.execution.rng import Streams

SCALES = {"lengthscale": 0.8, "signal_sd": 0.9, "transition_sd": 0.3, "observation_sd": 0.4}
OFFSET = 0.5
FIRST = 1.2
Y = double([0.9, -0.4, 1.1])


def build(y=Y, kernel="linear", spread=1e-7, cls=None, **keys):
    """A model with priors that are points, or have width ``spread`` around them."""
    unknown = {k: {"law": "log_normal", "median": v, "spread": spread} for k, v in SCALES.items()}
    keys |= {"offset_sd": OFFSET, "initial_sd": FIRST, "unknown": unknown, "jitter": 1e-12}
    sound = component("model", "gp_ssm", kernel=kernel, **keys)
    settings = sound if cls is None else cls.model_validate(sound.model_dump())
    sequence = Sequence(
        name="three", states=None, observations=y.view(1, -1, 1), system=None, state_names=["x"]
    )
    return settings.build(sequence, Streams(0))


def theta_of(model, x):
    """θ of states x [K, T + 1], with scales at their medians."""
    return torch.cat([model.medians.expand(len(x), -1), x], 1)


def quadrature(n):
    """Rows a, b, weight of a ~ N(0, σ²), b ~ N(0, s_b²), by the trapezoidal rule [n², 3]."""
    u = torch.linspace(-7, 7, n, dtype=F64)
    w = (-0.5 * u.square()).softmax(0)
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n))
    a = u[pairs[:, 0]] * SCALES["signal_sd"]
    b = u[pairs[:, 1]] * OFFSET
    return torch.stack([a, b, w[pairs].prod(1)], 1)


def chain(a, b, times):
    """Mean and covariance of x_0:T of x_t = a x_{t−1} + b + N(0, q)."""
    A = torch.eye(times + 1, dtype=F64)
    shift = torch.zeros(times + 1, dtype=F64)
    sd = double([FIRST] + [SCALES["transition_sd"]] * times)
    for t in range(times):
        A[t + 1] += a * A[t]
        shift[t + 1] = a * shift[t] + b
    A = A * sd
    return shift, A @ A.T


def test_state_density_equals_linear_model_with_random_weights():
    model = build()
    x = draw_normal(4, 4, seed=1)
    a, b, w = quadrature(70)[..., None, None].unbind(1)
    steps = Normal(a * x[:, :-1] + b, SCALES["transition_sd"]).log_prob(x[:, 1:]).sum(2)
    total = (w[..., 0] * steps.exp()).sum(0) * Normal(0.0, FIRST).log_prob(x[:, 0]).exp()
    theta = theta_of(model, x)
    scales = super(type(model), model).log_prior(theta[:, : model.n_scales])
    assert_close(model.log_prior(theta) - scales, total.log(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern32", "linear"])
def test_density_is_the_product_of_one_step_predictions(kernel):
    x = draw_normal(3, 6, seed=2)
    whole = build(torch.zeros(5, dtype=F64), kernel)
    total = Normal(0.0, FIRST).log_prob(x[:, 0])
    for t in range(1, 6):
        mean = torch.zeros(3, dtype=F64)
        variance = None
        if t > 1:  # f(x_{t−1}) given the earlier transitions
            part = build(torch.zeros(t - 1, dtype=F64), kernel)
            f = part.transition(theta_of(part, x[:, :t]), x[:, t - 1 : t])
            mean = f.mu[:, 0, 0]
            variance = f.v[:, 0, 0]
        else:
            square = x[:, 0] ** 2 if kernel == "linear" else torch.ones(3, dtype=F64)
            variance = SCALES["signal_sd"] ** 2 * square + OFFSET**2
        total += Normal(mean, (variance + SCALES["transition_sd"] ** 2).sqrt()).log_prob(x[:, t])
    theta = theta_of(whole, x)
    scales = super(type(whole), whole).log_prior(theta[:, : whole.n_scales])
    assert_close(whole.log_prior(theta) - scales, total, rtol=1e-7, atol=1e-7)


@cache
def exact():
    """p(y) and E[x_0:T | y] of the linear kernel, by quadrature over (a, b)."""
    evidence = 0.0
    mean = torch.zeros(4, dtype=F64)
    H = torch.eye(4, dtype=F64)[1:]
    for a, b, w in quadrature(26).tolist():
        m, P = chain(a, b, 3)
        S = H @ P @ H.T + SCALES["observation_sd"] ** 2 * torch.eye(3, dtype=F64)
        p = w * float(MultivariateNormal(H @ m, S).log_prob(Y).exp())
        evidence += p
        mean += p * (m + P @ H.T @ torch.linalg.solve(S, Y - H @ m))
    return evidence, mean / evidence


def z_of(cls=None, n=60_000):
    """Largest |z| of Σ p(y | x)/n and of the weighted means of states, over draws of the prior."""
    model = build(cls=cls)
    theta = model.sample_prior(n, Streams(0).init)
    weights = model.log_likelihood(theta, Series(Y.view(1, -1, 1)))[:, 0].exp()
    evidence, mean = exact()
    residual = weights.unsqueeze(1) * (theta[:, model.n_scales :] - mean)
    terms = torch.cat([(weights - evidence).unsqueeze(1), residual], 1)
    return float((terms.mean(0) / (terms.std(0) / n**0.5)).abs().max())


def test_evidence_and_states_are_exact_for_a_linear_kernel():
    assert z_of() < 4


MUTANTS = {
    "f drawn again at each time": (
        "return self._cov(scales, x, x) + noise",
        "return self._cov(scales, x, x) * torch.eye(x.shape[1]).to(x) + noise",
    ),
    "no process noise": (
        'scales["transition_sd"].square() + self',
        '0 * scales["transition_sd"] + self',
    ),
    "observed one time late": ("(y - x[:, 1:])", "(y - x[:, :-1])"),
    "no constant": ("return K + self.settings.offset_sd**2", "return K"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_change_the_evidence_or_the_states(mutant):
    assert z_of(mutate_component(gp_ssm, *MUTANTS[mutant])) > 6


def test_forecasts_of_a_linear_kernel_have_a_closed_form():
    """E[f(x)] = â m + b̂, and E[f(x)²] by the covariance of (a, b): updated by the observations,
    then ahead."""
    model = build()
    x = draw_normal(2, 4, seed=3)
    further = double([0.3, math.nan, -0.2])
    series = Series(torch.cat([Y, further]).view(1, -1, 1))
    forecast = model.forecast(theta_of(model, x), series, 2)
    q = SCALES["transition_sd"] ** 2
    r = SCALES["observation_sd"] ** 2
    prior = torch.diag(double([SCALES["signal_sd"] ** -2, OFFSET**-2]))
    for k in range(2):
        X = torch.stack([x[k, :-1], torch.ones(3, dtype=F64)], 1)
        C = torch.linalg.inv(prior + X.T @ X / q)
        a, b = (C @ X.T @ x[k, 1:] / q).tolist()
        m = float(x[k, -1])
        v = 0.0
        out = []
        for y in [*further.tolist(), math.nan, math.nan]:
            spread = float(C[0, 0] * (m * m + v) + 2 * C[0, 1] * m + C[1, 1])
            m = a * m + b
            v = a * a * v + spread + q
            out.append((m, v + r))
            if not math.isnan(y):
                gain = v / (v + r)
                m = m + gain * (y - m)
                v = (1 - gain) * v
        got = torch.stack([forecast.mu[k, :, 0], forecast.v[k, :, 0]], 1)
        assert_close(got, double(out[-2:]), rtol=1e-6, atol=1e-8)


def test_missing_observation_is_skipped():
    y = double([0.9, math.nan, 1.1])
    model = build(y)
    start = model.sample_start(500, Streams(0).init)
    assert start.isfinite().all()
    assert start[:, -1].mean() == pytest.approx(1.1, abs=0.1)
    value = model.log_likelihood(start, Series(y.view(1, -1, 1)))[:, 0]
    x = start[:, model.n_scales :]
    sd = model.by_name(start[:, : model.n_scales])["observation_sd"]
    expected = sum(Normal(x[:, t], sd).log_prob(y[t - 1]) for t in (1, 3))
    assert_close(value, expected)


def test_kink_is_scored_by_the_true_function_and_states():
    problem, rng = load("kink", n_steps=14, n_ahead=4)
    assert float(kink(torch.tensor(0.0))) == pytest.approx(0.8 - 0.3)
    noise = problem.path[1:] - kink(problem.path[:-1])
    assert noise.std() == pytest.approx(0.05, rel=0.6)
    model = component("model", "gp_ssm").build(problem, rng)
    method = component("inference", "hmc", chains=2, warmup=2)
    state, _ = advance(method, method.init(model, problem, rng), problem, rng, 0, 6)
    posterior = method.posterior(state)
    scores = problem.score(posterior, rng)
    learnt = model.transition(posterior.flat, problem.path[None, :-1])
    error = learnt.mu[..., 0].mean(0) - kink(problem.path[:-1])
    assert scores["rmse_f"] == pytest.approx(float(error.square().mean().sqrt()))
    error = posterior.flat[:, model.n_scales + 1 :].mean(0) - problem.path[1:]
    assert scores["rmse_states"] == pytest.approx(float(error.square().mean().sqrt()))
    assert {"log_score", "coverage90_f", "error/transition_sd"} <= scores.keys()
    assert "transition" in problem.draw(posterior, rng)
