"""Bayes by backprop: its four divergences have equal means; the published chain rule has a
different gradient."""

import pytest
import torch
from support.runs.configured import component, generator, load
from support.small.small_problems import advance, classes
from torch import distributions
from torch.testing import assert_close

from components.inference.variational.bayes_by_backprop import EVERY
from runner.execution.rng import Streams

PROBLEM = classes(n=12, n_inputs=2, n_classes=2)


def state_of(**changes):
    inference = component("inference", "bayes_by_backprop", n_predict=3, initial_std=0.3, **changes)
    rng = Streams(0)
    return inference, inference.init(
        component("model", "mlp", widths=[3]).build(PROBLEM, rng), PROBLEM, rng
    )


def gradients(inference, state, how, n):
    """Gradients of the bound with respect to μ and log σ, concatenated [n, 2P], on the same
    noise."""
    generator = torch.Generator().manual_seed(4)
    parameters = [state.q.network.theta, state.q.log_std]
    results = []
    for _ in range(n):
        value = inference.bound(state.q, PROBLEM.train, generator, how)["elbo"]
        results.append(torch.cat(torch.autograd.grad(value, parameters)))
    return torch.stack(results)


def test_terms_match_definition():
    inference, state = state_of(n_samples=2)
    q = state.q
    mu = q.network.theta.detach()
    sd = q.log_std.detach().exp()
    theta = q.draw(2, generator(4))
    f = q.network.outputs(theta, PROBLEM.train.x).detach()
    log_likelihood = sum(
        float(distributions.Categorical(logits=f[s, b, 0]).log_prob(PROBLEM.train.y[b, 0])) / 2
        for s in range(2)
        for b in range(12)
    )
    log_q, log_p = (
        distributions.Normal(m, s).log_prob(theta).sum(1).mean()
        for m, s in ((mu, sd), (torch.zeros_like(mu), q.network.prior_std))
    )
    terms = inference.bound(q, PROBLEM.train, generator(4), "sampled")
    assert float(terms["log_likelihood"]) == pytest.approx(log_likelihood, rel=1e-9)
    assert float(terms["kl"]) == pytest.approx(float(log_q - log_p), rel=1e-9)
    closed = distributions.kl_divergence(
        distributions.Normal(mu, sd), distributions.Normal(0.0, q.network.prior_std)
    ).sum()
    assert float(inference.kl(q, theta, "closed")) == pytest.approx(float(closed), rel=1e-9)
    mixture, other = state_of(prior="scale_mixture", mixture_share=0.25, mixture_stds=[1.0, 0.1])
    literal = (
        0.25 * distributions.Normal(0.0, 1.0).log_prob(theta).exp()
        + 0.75 * distributions.Normal(0.0, 0.1).log_prob(theta).exp()
    ).log()
    assert_close(mixture.log_prior(other.q, theta), literal.sum(1))


def test_sampled_entropy_has_exact_gradient():
    """d/dφ log q(μ + σε | φ) = (0, −1/σ) for any ε, which answers the remark after Bardenet's
    estimator."""
    inference, state = state_of()
    results = {kind: gradients(inference, state, kind, 300) for kind in EVERY}
    assert_close(results["sampled"], results["entropy"])
    for kind in ("closed", "path"):
        difference = results[kind] - results["sampled"]
        error = difference.std(0) / 300**0.5
        assert (error > 0).all()
        assert (difference.mean(0).abs() < 5 * error).all()
    # The published chain rule, without −log q: its mean with respect to log σ is too low by 1.
    mean = results["sampled"].mean(0)
    theta_only = gradients(inference, state, "sampled", 1)[0]
    assert mean.shape == theta_only.shape
    P = len(state.q.log_std)
    generator = torch.Generator().manual_seed(4)
    theta = state.q.draw(1, generator)
    f = state.q.network.log_prob(
        state.q.network.outputs(theta, PROBLEM.train.x), PROBLEM.train
    ).sum()
    printed = torch.autograd.grad(f + inference.log_prior(state.q, theta).sum(), state.q.log_std)[0]
    assert_close(results["sampled"][0, P:] - printed, torch.ones(P, dtype=printed.dtype))


def test_variances_match_gradients():
    inference, state = state_of(measured=60)
    variances = inference.variances(state)
    assert variances["sampled of mu"] == pytest.approx(variances["entropy of mu"], rel=1e-9)
    generator = torch.Generator().manual_seed(0)
    draws = []
    for _ in range(60):
        value = inference.bound(state.q, PROBLEM.train, generator, "path")["elbo"] / 12
        draws.append(torch.autograd.grad(value, state.q.log_std)[0])
    assert variances["path of log_sigma"] == pytest.approx(
        float(torch.stack(draws).var(0).sum()), rel=1e-9
    )
    scores = inference.posterior(state).scores()
    assert scores["trace_ratio/sampled of mu"] == 1.0
    assert scores["trace_ratio/path of mu"] == pytest.approx(
        variances["path of mu"] / variances["sampled of mu"]
    )


@pytest.mark.parametrize(
    "changes", [{"divergence": "closed"}, {"divergence": "path"}, {"prior": "scale_mixture"}]
)
def test_bayes_by_backprop_learns(changes):
    problem, rng = load("two_moons", n_train=60, n_test=100, noise=0.1)
    inference = component("inference", "bayes_by_backprop", n_predict=20, lr=0.02, **changes)
    state = inference.init(component("model", "mlp", widths=[8]).build(problem, rng), problem, rng)
    state, info = advance(inference, state, problem, rng, 0, 250)
    assert set(info) == {"elbo", "log_likelihood", "kl"}
    assert problem.score(inference.posterior(state), rng)["accuracy"] > 0.8
