"""Guided, generalised and oracle filters: Algorithm 6 with every loss and proposal, compared with
exact results."""

import math
import warnings
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, double, generator, normal
from support.series.small_sequences import (
    assert_same_estimates,
    moments_on_grid,
    one_observation,
    run,
    run_filter,
    sequence,
    system,
)
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.sequences import Observation
from components.errors import QuestionableConfigWarning
from components.series.filtering.guided import propose
from components.series.filtering.losses import (
    log_beta_bound,
    log_beta_likelihood,
    log_gamma_likelihood,
    log_huber_likelihood,
    log_likelihood,
)
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.models.stochastic_volatility import VolatilityModule
from runner.execution.rng import Streams

NAN = math.nan


class Curved(LinearGaussianModule):
    """y = h(x) + noise with h(x) = H x + ¼ sin(H x)."""

    def observation_mean(self, x, t):
        linear = super().observation_mean(x, t)
        return linear + 0.25 * torch.sin(linear)

    def log_observation(self, y, x, t):
        law = torch.distributions.MultivariateNormal(self.observation_mean(x, t), self.Sigma)
        return law.log_prob(y.unsqueeze(-2))


def draw_states():
    g = generator(0)
    x = normal(g, 2, 40, 3)
    return x, Observation(1, 2 * normal(g, 2, 2))


def test_linearised_proposal_is_optimal_for_linear_h():
    model = LinearGaussianModule(system())
    x, batch = draw_states()
    a = propose(model, batch, x, Streams(4), "optimal")
    b = propose(model, batch, x, Streams(4), "linearised")
    assert_close(a.x, b.x)  # the same normals through the same factors
    for q in (a, b):  # g f / q is p(y | x_{t−1}) for any draw
        weight = q.log_ratio + model.log_observation(batch.y, q.x, 1)
        assert_close(weight, model.log_predictive(batch.y, x, 1))


def test_guided_filters_agree_for_linear_h():
    problem = sequence(system(), 5, replicates=4)
    problem.observations[1, 2] = NAN
    keys = {"particles": 60}
    optimal = run_filter("guided_filter", problem, seed=5, **keys)
    for name, more in (
        ("guided_filter", {"proposal": "linearised"}),
        ("generalised_filter", {"proposal": "optimal", "loss": "kl"}),
        ("generalised_filter", {"proposal": "linearised", "loss": "beta", "beta": 0.0}),
    ):
        actual = run_filter(name, problem, seed=5, **keys, **more)
        for field in ("mean", "variance", "lower", "upper", "predicted", "log_normaliser"):
            assert_close(getattr(actual, field), getattr(optimal, field), rtol=1e-7, atol=1e-9)
        assert actual.evidence


@pytest.mark.parametrize("scheme", ["multinomial", "residual", "stratified", "systematic", "ssp"])
@pytest.mark.parametrize("name", ["bootstrap_filter", "guided_filter"])
def test_evidence_is_unbiased_with_every_resampling(name, scheme):
    problem = sequence(system(), 4, replicates=2000)
    problem.observations[::2, 2] = NAN
    model = LinearGaussianModule(problem.system)
    exact = run_filter("kalman", problem)
    inference = component("inference", name, particles=30, resampling=scheme, resample_below=0.7)
    actual = run(inference, model, problem, Streams(6))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert abs(z_score((actual.log_normaliser - exact.log_normaliser)[half].exp(), 1.0)) < 4


def test_curved_linearised_proposal_beats_transition():
    calm = replace(system(), Sigma=0.1 * system().Sigma)
    problem = sequence(calm, 3, replicates=400)
    model = Curved(calm)
    keys = {"particles": 100}
    boot = run_filter("bootstrap_filter", problem, model, seed=1, **keys)
    led = run_filter("guided_filter", problem, model, seed=2, proposal="linearised", **keys)
    shift = boot.log_normaliser.mean()
    a = (boot.log_normaliser - shift).exp()
    b = (led.log_normaliser - shift).exp()
    gap = (a.mean() - b.mean()) / (a.var() / len(a) + b.var() / len(b)).sqrt()
    assert abs(gap) < 4
    assert led.log_normaliser.std() < 0.8 * boot.log_normaliser.std()
    # its predictions do not use y_t
    assert z_score(led.predicted - boot.predicted, 0.0).abs().max() < 5


def test_losses_match_equations():
    """(6.11), (2.96), the γ-divergence and Huber's function, with integrals by quadrature, for two
    variances."""
    model = VolatilityModule(0.0, 0.9, 0.3, torch.zeros(1, dtype=F64))
    x = double([[[-0.7], [0.0], [1.3]]])
    batch = Observation(1, double([[1.7]]))
    grid = torch.linspace(-60, 60, 240_001, dtype=F64)
    for n in range(3):
        law = torch.distributions.Normal(0.0, (0.5 * x[0, n, 0]).exp())
        g = law.log_prob(batch.y[0, 0]).exp()
        everywhere = law.log_prob(grid).exp()
        assert_close(log_likelihood(model, batch, x)[0, n], g.log())
        for power in (0.05, 0.4, 1.0):
            integral = (everywhere ** (1 + power)).sum() * (grid[1] - grid[0])
            loss = integral / (power + 1) - g**power / power  # (6.11)
            constant = 1 / (power + 1) - 1 / power
            actual = log_beta_likelihood(model, batch, x, power)[0, n]
            assert_close(actual, constant - loss, rtol=1e-7, atol=1e-9)
            gamma_loss = -(g**power) / integral ** (power / (1 + power)) / power
            actual = log_gamma_likelihood(model, batch, x, power)[0, n]
            assert_close(actual, -1 / power - gamma_loss, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("threshold", [0.5, 1.345, 50.0])
def test_huber_loss_uses_whitened_residuals(threshold):
    model = LinearGaussianModule(system())
    x, batch = draw_states()
    actual = log_huber_likelihood(model, batch, x, threshold)
    L = torch.linalg.cholesky(model.Sigma)
    residuals = (batch.y[:, None] - x @ model.H.T).mT
    size = torch.linalg.solve_triangular(L, residuals, upper=False).abs()
    losses = torch.where(size <= threshold, size**2 / 2, threshold * size - threshold**2 / 2)
    at_zero = -math.log(2 * math.pi) - L.diagonal().log().sum()
    assert_close(actual, at_zero - losses.sum(1), rtol=1e-10, atol=0)
    if threshold == 50.0:
        assert_close(actual, log_likelihood(model, batch, x))


def test_beta_bound_is_reached_at_mode():
    model = LinearGaussianModule(system())
    x, _ = draw_states()
    mode = Observation(1, model.observation_mean(x, 1)[:, 0])
    for beta in (0.0, 0.2, 1.0):
        integral = model.log_power_integral(x, 1, 1 + beta)
        bound = log_beta_bound(model.log_observation_bound(1), integral, beta)
        assert_close(log_beta_likelihood(model, mode, x, beta)[:, 0].max(), bound)


@pytest.mark.parametrize(
    ("loss", "size"), [("beta", 0.0), ("gamma", 0.0), ("beta", 1e-13), ("gamma", 1e-13)]
)
def test_losses_of_size_zero_give_ordinary_filter(loss, size):
    problem = sequence(system(), 6, replicates=3)
    problem.observations[1, 2] = NAN
    model = LinearGaussianModule(problem.system)
    exact = run_filter("bootstrap_filter", problem, seed=9, particles=70)
    inference = component(
        "inference", "generalised_filter", particles=70, loss=loss, **{loss: size}
    )
    actual = run(inference, model, problem, Streams(9))
    assert_same_estimates(actual, exact)
    assert actual.evidence == (size == 0)


def test_generalised_beta_filter_is_beta_bootstrap_filter():
    problem = sequence(system(), 6, replicates=3)
    exact = run_filter("beta_bootstrap_filter", problem, seed=9, particles=70, beta=0.3)
    actual = run_filter("generalised_filter", problem, seed=9, particles=70, beta=0.3)
    assert torch.equal(actual.mean, exact.mean)
    assert torch.equal(actual.log_normaliser, exact.log_normaliser)


@pytest.mark.filterwarnings("ignore::components.errors.QuestionableConfigWarning")
@pytest.mark.parametrize("proposal", ["transition", "optimal"])
@pytest.mark.parametrize("loss", ["beta", "gamma", "huber"])
def test_one_step_generalised_posterior_matches_quadrature(loss, proposal):
    # Σ is so large compared with Q that weights f/q have a finite variance: a proposal that follows
    # an outlier is too narrow for a loss that downweights it.
    keys = {
        "particles": 4000,
        "loss": loss,
        "proposal": proposal,
        "beta": 0.5,
        "gamma": 0.5,
        "threshold": 0.8,
    }
    actual = run_filter("generalised_filter", one_observation(2.0, 1.0, 1.0), seed=4, **keys)
    integral = (2 * math.pi) ** -0.25 / math.sqrt(1.5)  # ∫ g^{3/2}

    def log_g(x):  # (6.4)
        g = torch.exp(-0.5 * (2.0 - x) ** 2) / math.sqrt(2 * math.pi)
        r = (2.0 - x).abs()
        return {
            "beta": g**0.5 / 0.5,
            "gamma": g**0.5 / integral ** (0.5 / 1.5) / 0.5,
            "huber": -torch.where(r <= 0.8, r**2 / 2, 0.8 * r - 0.32),
        }[loss]

    mean, variance = moments_on_grid(log_g)
    assert z_score(actual.mean[:, 0, 0], mean).abs() < 4
    assert z_score(actual.variance[:, 0, 0], variance).abs() < 4


def test_guided_proposal_with_robust_loss_warns():
    """The filter warns once at its setup; at an outlier few particles carry the weight."""
    problem = sequence(system(), 3, replicates=2)
    problem.observations[:, 2] += 40.0
    model = LinearGaussianModule(problem.system)
    ess = {}
    for proposal in ("transition", "optimal", "linearised"):
        for loss in ("kl", "beta", "gamma", "huber"):
            inference = component(
                "inference", "generalised_filter", particles=500, proposal=proposal, loss=loss
            )
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                ess[proposal, loss] = run(inference, model, problem, Streams(3)).ess[:, 2]
            expected = (
                [] if "transition" in proposal or loss == "kl" else [QuestionableConfigWarning]
            )
            assert [w.category for w in warned] == expected
            if warned:
                assert (
                    f"inference.proposal={proposal} follows outliers that inference.loss={loss}"
                    in str(warned[0].message)
                )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mild = component(
            "inference", "generalised_filter", proposal="optimal", loss="beta", beta=0.0
        )
        mild.init(model, problem, Streams(0))
    for proposal in ("optimal", "linearised"):
        for loss in ("beta", "gamma"):
            assert (ess[proposal, loss] < 0.5 * ess["transition", loss]).all()
