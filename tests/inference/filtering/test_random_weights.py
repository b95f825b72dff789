"""The random-weight particle filter: unbiased estimates of G^β, compared with its integral, and of
the normaliser, compared with the filter with known weights."""

import torch
from support.runs.configured import component, generator, normal
from support.series.small_sequences import run, sequence, system
from support.targets.known_targets import z_score

from components.contracts.sequences import Observation
from components.series.filtering import generalised_filter, losses
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from runner.execution.rng import Streams

BETA = 0.4


def draw_states():
    g = generator(0)
    x = normal(g, 2, 3, 3)
    return (
        LinearGaussianModule(system()),
        x,
        Observation(1, torch.randn(2, 2, generator=g).double()),
    )


def estimates(rule, n):
    """n estimates Ĝ of every particle [n, R, N]."""
    model, x, batch = draw_states()
    many = x.repeat(1, n, 1)
    generator = torch.Generator().manual_seed(1)
    log_bound = model.log_observation_bound(1)
    value = rule(model, batch, many, beta=BETA, log_bound=log_bound, generator=generator)
    return value.exp().unflatten(1, (n, -1)).transpose(0, 1)


def test_beta_likelihood_estimate_is_unbiased():
    model, x, batch = draw_states()
    exact = losses.log_beta_likelihood(model, batch, x, BETA).exp()
    actual = estimates(losses.log_beta_estimate, 4000)
    assert (actual >= 0).all()
    assert z_score(actual, exact).abs().max() < 4


def wrong_rate(model, batch, x, beta, log_bound, generator):
    """Broken variant: the Poisson rate without 1/(1 + β)."""
    log_bound = log_bound + torch.log1p(torch.tensor(beta)).item() / beta
    return losses.log_beta_estimate(model, batch, x, beta, log_bound, generator)


def test_wrong_rate_is_detected():
    model, x, batch = draw_states()
    exact = losses.log_beta_likelihood(model, batch, x, BETA).exp()
    assert z_score(estimates(wrong_rate, 4000), exact).abs().max() > 6


def run_generalised(rule_of_integral, particles, replicates, seed):
    keys = {"loss": "beta", "beta": BETA, "particles": particles, "integral": rule_of_integral}
    inference = component("inference", "generalised_filter", **keys)
    s = system()
    problem = sequence(s, 6, replicates)
    return run(inference, LinearGaussianModule(s), problem, Streams(seed)).log_normaliser


def test_normaliser_matches_exact_integral(monkeypatch):
    exact = run_generalised("exact", 4000, 8, 0)
    level = exact.mean()
    result = run_generalised("poisson", 200, 200, 1)
    ratio = (result - level).exp()
    assert abs(z_score(ratio, (exact - level).exp().mean())) < 4
    monkeypatch.setattr(generalised_filter, "log_beta_estimate", wrong_rate)
    ratio = (run_generalised("poisson", 200, 200, 1) - level).exp()
    assert abs(z_score(ratio, (exact - level).exp().mean())) > 6
