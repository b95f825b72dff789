"""Collapsed variational Bayes of topics: literal updates, to second and zeroth order."""

import pytest
import torch
from support.runs.configured import component, generator
from support.small.small_corpora import TINY, corpus, documents, lda, small_bars
from support.small.small_problems import advance
from torch.testing import assert_close

from components.topics.maths.collapsed import update_responsibilities
from runner.execution.rng import Streams

K = 3


def literally(pairs, phi, alpha, eta, second_order):
    """Pair by pair; the words of a pair share φ, and counts are recomputed over all words except
    one of the pair."""
    words, counts, lengths = (x.tolist() for x in pairs)
    docs = [d for d, n in enumerate(lengths) for _ in range(n)]
    phi = phi.clone()
    for j, (d, w) in enumerate(zip(docs, words, strict=True)):
        mean = {
            "doc": torch.zeros(K).double(),
            "word": torch.zeros(K).double(),
            "topic": torch.zeros(K).double(),
        }
        spread = {key: torch.zeros(K).double() for key in mean}
        for i, (e, v) in enumerate(zip(docs, words, strict=True)):
            n = counts[i] - (i == j)
            for key, belongs in {"doc": e == d, "word": v == w, "topic": True}.items():
                mean[key] += belongs * n * phi[i]
                spread[key] += belongs * n * phi[i] * (1 - phi[i])
        total = {
            "doc": alpha + mean["doc"],
            "word": eta[w] + mean["word"],
            "topic": eta.sum() + mean["topic"],
        }
        log_phi = total["doc"].log() + total["word"].log() - total["topic"].log()
        if second_order:
            for key, sign in {"doc": -1, "word": -1, "topic": 1}.items():
                log_phi = log_phi + sign * spread[key] / (2 * total[key] ** 2)
        phi[j] = log_phi.softmax(0)
    return phi


@pytest.mark.parametrize("second_order", [False, True])
def test_updates_equal_formulas(second_order):
    train = documents(TINY)
    model = lda(corpus(), K)
    g = generator(0)
    phi = torch.rand(len(train.words), K, generator=g).double().softmax(1)
    expected = literally(train.pairs, phi, model.alpha, model.eta, second_order)
    updated = update_responsibilities(train.pairs, phi, model.alpha, model.eta, second_order)
    assert_close(updated, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("order", [0, 2])
def test_topics_are_expected_counts(order):
    problem = small_bars()
    inference = component("inference", "lda_collapsed_vb", order=order)
    rng = Streams(1)
    state = inference.init(lda(problem, 6, 0.1, 0.1), problem, rng)
    begun = problem.score(inference.posterior(state), rng)["perplexity"]
    state, info = advance(inference, state, problem, rng, 0, 40)
    posterior = inference.posterior(state)
    assert problem.score(posterior, rng)["perplexity"] < 0.85 * begun
    assert info["change"] < 0.1
    n = (
        torch.zeros(9, 6)
        .double()
        .index_add_(0, problem.train.words, problem.train.counts[:, None] * state.phi)
    )
    assert_close(posterior.topics[0].T, (n + 0.1) / (n.sum(0) + 0.9))
