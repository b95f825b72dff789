"""Stochastic ascent of topics: its natural gradient equals the bound's, and is unbiased over
minibatches."""

from dataclasses import replace

import torch
from support.runs.configured import component
from support.small.small_corpora import lda, small_bars
from torch.autograd import grad
from torch.testing import assert_close

from components.topics.starts import log_weights, topic_elbo
from runner.execution.rng import Streams


def take_steps(inference, model, problem, batches):
    rng = Streams(0)
    state = inference.init(model, problem, rng)
    for batch in batches:
        state, info = inference.step(state, batch, rng)
    return state, info


def aims(problem, model, **keys):
    """λ̂ of every minibatch of an epoch, at one λ."""
    # ρ = 1: λ is λ̂ after a step
    inference = component("inference", "lda_svi", kappa=0.0, tau=0.0, **keys)
    batches = [
        batch
        for _, batch in problem.batches("minibatch", Streams(0), 0, problem.n // problem.batch_size)
    ]
    return torch.stack([take_steps(inference, model, problem, [batch])[0].lam for batch in batches])


def test_natural_gradient_is_unbiased_over_minibatches():
    problem = small_bars(batch_size=15)
    model = lda(problem, 6)
    parts = aims(problem, model)
    whole = take_steps(
        component("inference", "lda_svi", kappa=0.0, tau=0.0), model, problem, [problem.train]
    )[0].lam
    assert len(parts) == 4
    assert (parts[0] - whole).abs().max() > 1
    assert_close(parts.mean(0), whole, rtol=1e-10, atol=1e-9)


def test_natural_gradient_of_the_bound_uses_fisher_metric():
    """F ∇̃ = ∇_λ ELBO with F_k the Fisher information diag ψ'(λ_k) − ψ'(Σ λ_k) of Dir(λ_k), and
    converged γ."""
    problem = small_bars()
    model = lda(problem, 6)
    inference = component("inference", "lda_svi", kappa=0.0, tau=0.0, tolerance=1e-12, updates=3000)
    lam = inference.init(model, problem, Streams(0)).lam
    factors = inference.factors(model, lam, problem.train)
    natural = model.eta[:, None] + factors.stats - lam
    moving = lam.clone().requires_grad_()
    words, counts, lengths = problem.train.pairs
    rows = torch.arange(len(lengths)).repeat_interleave(lengths)
    norm = (factors.gamma.digamma().exp()[rows] * log_weights(moving).exp()[words]).sum(1)
    fit = torch.zeros_like(factors.fit).index_add(0, rows, counts * norm.log())
    (gradient,) = grad(topic_elbo(model, problem.train, replace(factors, fit=fit), moving), moving)
    for k in range(6):
        fisher = torch.polygamma(1, lam[:, k]).diag() - torch.polygamma(1, lam[:, k].sum())
        assert_close(fisher @ natural[:, k], gradient[:, k], rtol=1e-6, atol=1e-8)


def test_steps_follow_robbins_and_monro():
    problem = small_bars(batch_size=20)
    model = lda(problem, 6)
    inference = component("inference", "lda_svi", kappa=0.6, tau=3.0)
    batches = [batch for _, batch in problem.batches("minibatch", Streams(0), 0, 3)]
    initial, _ = take_steps(inference, model, problem, batches[:2])
    after, info = inference.step(initial, batches[2], Streams(0))
    assert info["rho"] == (3 + 3.0) ** -0.6
    aim = model.eta[:, None] + 3 * inference.factors(model, initial.lam, batches[2]).stats
    assert_close(after.lam, (1 - info["rho"]) * initial.lam + info["rho"] * aim)


def test_full_batch_step_equals_a_coordinate_ascent_pass():
    problem = small_bars()
    model = lda(problem, 6)
    cavi = component("inference", "lda_cavi", starts=1)
    theirs, _ = cavi.step(cavi.init(model, problem, Streams(0)), problem.train, Streams(0))
    ours, _ = take_steps(
        component("inference", "lda_svi", kappa=0.0, tau=0.0), model, problem, [problem.train]
    )
    assert_close(ours.lam, theirs.lam[0])
