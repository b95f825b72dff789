"""Coordinate ascent of topics: the literal bound, literal updates, monotone warm passes, and the
end of a run."""

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load
from support.small.small_corpora import (
    TINY,
    assignments,
    corpus,
    documents,
    lda,
    small_bars,
    words_of,
)
from support.small.small_problems import train
from torch.distributions import Dirichlet, kl_divergence
from torch.testing import assert_close

from components.errors import NumericalError
from components.maths.compiled.functions import exp_digamma
from components.topics.lda_cavi import check_bound_increase
from components.topics.maths.document_factors import fit_documents
from components.topics.starts import evenly, log_weights, topic_elbo
from runner.execution.rng import Streams

K = 2
V = 3


@pytest.fixture
def factors():
    """γ [D, K] and λ [V, K] at random values."""
    g = generator(3)
    return tuple(0.3 + 3 * torch.rand(n, K, generator=g).double() for n in (len(TINY), V))


def mean_logs(gamma, lam):
    """E log π [D, K] and E log B [V, K]."""
    return gamma.digamma() - gamma.sum(1, keepdim=True).digamma(), lam.digamma() - lam.sum(
        0
    ).digamma()


def test_exp_digamma_equals_the_library():
    x = torch.logspace(-1.3, 6, 300, dtype=F64)
    assert_close(double(list(map(exp_digamma, x.tolist()))), x.digamma().exp(), rtol=1e-11, atol=0)


def test_bound_is_the_literal_one(factors):
    """Σ_z q(z) over all K^n assignments of the terms of (5.6) with labels, and the divergences of q
    from the Dirichlet priors."""
    problem = corpus()
    gamma, lam = factors
    model = lda(problem, K)
    log_pi, log_b = mean_logs(gamma, lam)
    words, docs = words_of(TINY)
    phi = (log_pi[docs] + log_b[words]).softmax(1)  # the best q(z) for these
    filled = gamma[[i for i, row in enumerate(TINY) if row]]  # an empty document has γ = α
    expected = -kl_divergence(Dirichlet(filled), Dirichlet(model.alpha)).sum()
    expected -= kl_divergence(Dirichlet(lam.T), Dirichlet(model.eta)).sum()
    for z in assignments(len(words), K):
        which = torch.tensor(z)
        q = phi.gather(1, which[:, None]).prod()
        joint = log_pi[docs, which].sum() + log_b[words, which].sum()
        expected = expected + q * (joint - q.log())
    at_rest = fit_documents(
        problem.train.pairs, log_weights(lam).exp(), model.alpha, gamma, 0, 1e-3
    )
    assert_close(topic_elbo(model, problem.train, at_rest, lam), expected)


def run(problem, model, steps, seed=0, **changes):
    inference = component("inference", "lda_cavi", **changes)
    return train(inference, model, problem, steps, seed)[0]


@pytest.mark.parametrize("updates", [1, 3])
def test_updates_equal_formulas(factors, updates):
    train = documents(TINY)
    gamma, lam = factors
    model = lda(corpus(), K)
    words, docs = words_of(TINY)
    _, log_b = mean_logs(gamma, lam)
    expected = gamma.clone()
    for _ in range(updates):
        log_pi, _ = mean_logs(expected, lam)
        phi = (log_pi[docs] + log_b[words]).softmax(1)
        expected = model.alpha + torch.zeros_like(gamma).index_add_(0, docs, phi)
    log_pi, _ = mean_logs(expected, lam)
    phi = (log_pi[docs] + log_b[words]).softmax(1)
    stats = torch.zeros_like(lam).index_add_(0, words, phi)
    fit = fit_documents(train.pairs, log_b.exp(), model.alpha, gamma, updates, 1e-12)
    assert_close(fit.gamma, expected, rtol=1e-9, atol=1e-12)
    assert_close(fit.stats, stats, rtol=1e-9, atol=1e-12)
    state = run(corpus(), model, 1, starts=1, fresh_passes=0, updates=updates)
    begun = component("inference", "lda_cavi", starts=1).init(model, corpus(), Streams(0)).lam[0]
    fit = fit_documents(
        train.pairs, log_weights(begun).exp(), model.alpha, evenly(model, train), updates, 1e-3
    )
    assert_close(state.lam[0], model.eta[:, None] + fit.stats)
    assert state.gamma[0, 1].tolist() == model.alpha.tolist(), (
        "an empty document is left with its prior"
    )


def test_documents_stop_below_the_tolerance():
    """Mean |γ' − γ| over topics is below the tolerance only at the last update."""
    problem = small_bars()
    model = lda(problem, 6)
    weights = torch.rand(9, 6, generator=generator(0)).double()
    start = evenly(model, problem.train)
    fit = fit_documents(problem.train.pairs, weights, model.alpha, start, 300, 1e-2)
    numbers = sorted(set(fit.passes.tolist()))
    assert 3 < numbers[0] < numbers[-1] <= 300
    gamma = torch.stack(
        [
            fit_documents(problem.train.pairs, weights, model.alpha, start, n, 0.0).gamma
            for n in range(numbers[-1] + 1)
        ]
    )
    moves = gamma.diff(dim=0).abs().mean(2)
    for d, n in enumerate(fit.passes.tolist()):
        assert_close(fit.gamma[d], gamma[n, d])
        assert moves[n - 1, d] < 1e-2 or n == 300
        assert (moves[: n - 1, d] >= 1e-2).all()


def test_bound_rises_in_warm_passes_and_a_fall_is_reported():
    problem = small_bars()
    bounds = run(problem, lda(problem, 6, 0.1, 0.1), 25, fresh_passes=5, starts=2).bounds.rows
    assert (bounds[5:] >= bounds[4:-1] - 1e-9).all()
    with pytest.raises(
        NumericalError,
        match=r"start 2 .* -4\.0+ to -5\.0+ .*; use dtype=float64",
    ):
        check_bound_increase(double([-4.0, -4.0]), double([-3.0, -5.0]))


def test_document_factors_start_cold_or_warm():
    """One update starts from α + L/K in a fresh pass, and from the previous values in a warm
    one."""
    problem = small_bars()
    model = lda(problem, 6)
    for fresh in (1, 2):
        old, after = (
            run(problem, model, t, starts=1, fresh_passes=fresh, updates=1) for t in (1, 2)
        )
        begin = evenly(model, problem.train) if fresh == 2 else old.gamma[0]
        fit = fit_documents(
            problem.train.pairs, log_weights(old.lam[0]).exp(), model.alpha, begin, 1, 1e-3
        )
        assert_close(after.gamma[0], fit.gamma)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_bars_are_recovered_where_warm_starts_are_not(seed):
    problem, rng = load("bars", seed)
    model = lda(problem, 10, 0.1, 0.1)
    results = {}
    for name, keys in {"fresh": {}, "warm": {"fresh_passes": 0, "starts": 1}}.items():
        state = run(problem, model, 50, seed, **keys)
        results[name] = problem.score(
            component("inference", "lda_cavi", **keys).posterior(state), rng
        )
    assert results["fresh"]["perplexity"] < results["fresh"]["perplexity_truth"] + 0.037
    assert results["fresh"]["topic_distance"] < 0.02
    assert results["warm"]["perplexity"] > results["warm"]["perplexity_truth"] + 0.3
