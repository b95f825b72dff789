"""bb_alpha with draws from the cavity: equations 23 to 26, and the exact objective of a conjugate
model."""

import math
from types import SimpleNamespace

import pytest
import torch
from alpha_networks import make_q
from support.runs.configured import F64, double, draw_normal, generator
from support.small.small_problems import component, real
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.testing import assert_close

from runner.execution.rng import Streams

LINEAR = component("model", "mlp", widths=[], prior_std=0.8, noise=0.25)
CAVITY = {"draws_from": "cavity", "n_predict": 5}


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0])
def test_cavity_is_q_over_power_of_factor(alpha):
    """q̃ ∝ q/f̃^α with f̃ = (q/p)^{1/N}, and q is recovered from it by equation (24)."""
    q = make_q(real())
    n = 7.0
    mean, std, _ = component("inference", "bb_alpha", alpha=alpha, **CAVITY).cavity(q, n)
    theta = draw_normal(4, len(mean))
    log_q = Normal(q.network.theta, q.log_std.exp()).log_prob(theta).sum(1)
    log_p = Normal(0.0, 0.8).log_prob(theta).sum(1)
    log_cavity = Normal(mean, std).log_prob(theta).sum(1)
    difference = log_q - alpha * (log_q - log_p) / n - log_cavity
    assert_close(difference, difference[:1].expand(4))
    back = log_cavity + alpha / (n - alpha) * (log_cavity - log_p) - log_q  # (24)
    assert_close(back, back[:1].expand(4))


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_divergence_matches_equation_26(alpha):
    q = make_q(real())
    n = 3.0
    mean, std, renyi = component("inference", "bb_alpha", alpha=alpha, **CAVITY).cavity(q, n)
    beta = n / (n - alpha)
    x = torch.linspace(-12, 12, 6001, dtype=F64)[:, None]
    log_powers = beta * Normal(mean, std).log_prob(x) + (1 - beta) * Normal(0.0, 0.8).log_prob(x)
    each = (log_powers.logsumexp(0) + math.log(24 / 6000)) / (beta - 1)
    assert float(renyi) == pytest.approx(float(each.sum()), rel=1e-6)


def test_small_alpha_is_variational_kl():
    q = make_q(real())
    renyi = component("inference", "bb_alpha", alpha=1e-7, **CAVITY).cavity(q, 20.0)[2]
    kl = kl_divergence(Normal(q.network.theta, q.log_std.exp()), Normal(0.0, 0.8)).sum()
    assert float(renyi) == pytest.approx(float(kl), rel=1e-6)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_objective_matches_equation_25(alpha):
    problem = real(batch_size=10)
    q = make_q(problem)
    _, batch = next(iter(problem.batches("minibatch", Streams(0), 0, 1)))
    inference = component("inference", "bb_alpha", alpha=alpha, n_samples=3, **CAVITY)
    objective = inference.terms(q, 0, batch, generator(5))["objective"]
    mean, std, renyi = inference.cavity(q, problem.n)
    noise = draw_normal(3, len(mean), seed=5)
    theta = mean + std * noise
    ell = q.network.log_prob(q.network.outputs(theta, batch.x), batch)
    fit = problem.n / 10 / alpha * (ell * alpha).exp().mean(0).log().sum()
    assert_close(objective, fit - renyi + q.network.hyperprior(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_both_kinds_of_draws_estimate_same_objective(alpha):
    """Equations (22), (23) and (25) for a linear model with closed-form expectations: both
    estimators agree with them, and the cavity's has less variance."""
    problem = real(n=12, missing=0.0)
    q = make_q(problem, 0.3, LINEAR)
    x = torch.cat([problem.train.x, torch.ones(12, 1, dtype=F64)], 1)
    # θ: W [T, D], b [T] of two tasks
    W = 3
    b = 2
    N = 12

    def moments(m, v):  # moments of f [N, T]
        f_mean = []
        f_var = []
        for t in range(b):
            pick = [*range(t * W, t * W + W), b * W + t]
            f_mean.append(x @ m[pick])
            f_var.append(x.square() @ v[pick])
        return torch.stack(f_mean, 1), torch.stack(f_var, 1)

    assert len(q.network.theta) == b * (W + 1)
    inference = component("inference", "bb_alpha", alpha=alpha, n_samples=3, **CAVITY)
    mean, std, renyi = inference.cavity(q, N)
    f_mean, f_var = moments(mean, std**2)
    # ∫ N(f | m, v) N(y | f, σ²)^α df = (2πσ²)^{(1−α)/2} α^{−½} N(y | m, v + σ²/α), summed over
    # tasks
    noise = 0.25
    log_each = (
        Normal(f_mean, (f_var + noise / alpha).sqrt()).log_prob(problem.train.y)
        + 0.5 * (1 - alpha) * math.log(2 * math.pi * noise)
        - 0.5 * math.log(alpha)
    )
    exact = float(log_each.sum() / alpha - renyi + q.network.hyperprior())
    K = 4000
    spread = {}
    for draws in ("cavity", "posterior"):
        bb_alpha = component(
            "inference", "bb_alpha", alpha=alpha, n_samples=K, draws_from=draws, n_predict=5
        )
        values = torch.tensor(
            [
                float(bb_alpha.terms(q, 0, problem.train, generator(s))["objective"])
                for s in range(12)
            ]
        )
        assert abs(float(values.mean()) - exact) < 5 * float(values.std()) / 12**0.5 + 1e-2
        spread[draws] = float(values.std())
    assert spread["cavity"] < spread["posterior"]


@pytest.mark.parametrize("alpha", [1e-6, 0.3, 1.0])
def test_equal_rows_make_tied_factor_exact(alpha):
    """N labels 0.7 at one input: q ∝ p f̃^N is the posterior, and L is log p(y) for every α."""
    n = 4
    s2 = 0.64
    noise = 0.25
    y = torch.full((n,), 0.7, dtype=F64)
    covariance = s2 * torch.ones(n, n, dtype=F64) + noise * torch.eye(n, dtype=F64)
    evidence = float(MultivariateNormal(torch.zeros(n, dtype=F64), covariance).log_prob(y))
    precision = 1 / s2 + n / noise
    network = SimpleNamespace(
        theta=double([float(y.sum()) / noise / precision]),
        prior_std=double([s2**0.5]),
    )

    def objective(shift, factor):
        q = SimpleNamespace(
            network=SimpleNamespace(theta=network.theta + shift, prior_std=network.prior_std),
            log_std=double([-0.5 * math.log(precision) + math.log(factor)]),
        )
        m, sd, renyi = component("inference", "bb_alpha", alpha=alpha, **CAVITY).cavity(q, n)
        each = (
            Normal(m, (sd.square() + noise / alpha).sqrt()).log_prob(y)
            + 0.5 * (1 - alpha) * math.log(2 * math.pi * noise)
            - 0.5 * math.log(alpha)
        )
        return float(each.sum() / alpha - renyi)

    assert objective(0.0, 1.0) == pytest.approx(evidence, abs=1e-8 if alpha > 0.1 else 1e-4)
    if alpha > 0.1:  # stationary: differences are second-order
        for change in ((1e-3, 1.0), (-1e-3, 1.0), (0.0, 1.003), (0.0, 0.997)):
            assert abs(objective(*change) - evidence) < 1e-4
