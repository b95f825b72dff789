"""Corpora: integer counts, halves of documents, and scores that do not depend on the order of
topics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from support.runs.configured import component, double, generator
from support.small.small_corpora import TINY, corpus, documents, lda, small_bars
from torch import Tensor
from torch.testing import assert_close

from components.contracts.posteriors import HoldsTopics
from components.errors import ConfigMismatchError
from components.topics.corpus import Topics, count_words, halves
from components.topics.topic_scores import (
    align_topics,
    coherence,
    completion,
    distance,
    proportions,
    top_words,
)
from runner.execution.rng import Streams


def as_lists(counts):
    words = counts.words.repeat_interleave(counts.counts)
    return [part.tolist() for part in words.split(counts.totals.tolist())]


def even(K=2, V=3, seed=0):
    topics = torch.rand(K, V, generator=generator(seed)).double()
    return topics / topics.sum(1, keepdim=True)


def test_tables_of_counts_have_their_parts():
    table = torch.tensor([[2.0, 0, 1], [0, 0, 0], [0, 1, 2], [0, 0, 1]])
    counts = count_words(table)
    assert as_lists(counts) == [[0, 0, 2], [], [1, 2, 2], [2]]
    assert as_lists(counts.part(torch.tensor([2, 1, 0]), 1.0)) == [[1, 2, 2], [], [0, 0, 2]]
    assert counts.totals.tolist() == [3, 0, 3, 1]


@pytest.mark.parametrize(
    ("wrong", "message"), [(0.5, r"one is 0\.5"), (-1.0, "one is -1"), (math.nan, "one is nan")]
)
def test_counts_must_be_integers(wrong, message):
    with pytest.raises(ConfigMismatchError, match=f"{message}.*; give counts"):
        count_words(torch.tensor([[1.0, wrong]]))


def test_documents_are_split_into_halves():
    rows = [[0, 0, 0, 1, 2], [], [2], [1, 1], [0] * 50 + [1] * 50]
    whole = documents(rows)
    observed, held = halves(whole, generator(0))
    assert observed.totals.tolist() == [2, 0, 0, 1, 50]
    assert held.totals.tolist() == [3, 0, 1, 1, 50]
    assert [
        sorted(a + b) for a, b in zip(as_lists(observed), as_lists(held), strict=True)
    ] == as_lists(whole)
    share = observed.counts[-2:].double() / 50
    assert 0.3 < float(share[0]) < 0.7, "drawn at random"
    assert (observed.counts > 0).all()


def test_perplexity_is_literal_and_uses_the_prior_if_unobserved():
    problem = corpus()
    topics = even()
    alpha = double([0.3, 0.9])
    posterior = Topics(topics[None], alpha)
    assert isinstance(posterior, HoldsTopics)
    shares = proportions(problem.seen, topics, alpha)
    assert_close(shares[1], alpha / alpha.sum())  # an empty document
    # a document of one word, which is held out
    assert_close(shares[3], alpha / alpha.sum())
    total = 0.0
    n = 0
    for row, share in zip(as_lists(problem.held), shares, strict=True):
        for word in row:
            total = total + math.log(float(share @ topics[:, word]))
            n = n + 1
    assert_close(problem.score(posterior, Streams(0))["perplexity"], math.exp(-total / n))
    for share, row in zip(shares, as_lists(problem.seen), strict=True):  # at rest: E log π by hand
        gamma = share * (alpha.sum() + len(row))
        phi = (gamma.digamma()[:, None] + topics[:, row].log()).softmax(0)
        assert_close(gamma, alpha + phi.sum(1), rtol=1e-3, atol=1e-3)


def test_topic_order_does_not_matter():
    problem = small_bars()
    truth = problem.truth.topics[0]
    order = torch.randperm(6, generator=generator(1))
    mixed = Topics(torch.stack([truth[order], truth, truth[order.flip(0)]]), problem.truth.alpha)
    scores = problem.score(mixed, Streams(0))
    assert scores["topic_distance"] == pytest.approx(0, abs=1e-12)
    assert scores["perplexity"] == pytest.approx(scores["perplexity_truth"], rel=1e-9)
    assert_close(align_topics(mixed.topics), truth[order.flip(0)])
    assert distance(truth[:4], truth) == pytest.approx(2 / 6), "two true topics have no match"
    assert_close(distance(torch.cat([even(3, 9), truth]), truth), 0.0)
    assert_close(distance(torch.full((6, 9), 1 / 9).double(), truth), 2 / 3)


def test_mixture_of_draws_averages_their_predictions():
    problem = corpus()
    alpha = double([0.5, 0.5])
    sets = [even(seed=s) for s in (0, 1)]
    each = [
        completion(Topics(topics[None], alpha), problem.seen, problem.held).exp() for topics in sets
    ]
    both = completion(Topics(torch.stack(sets), alpha), problem.seen, problem.held).exp()
    assert_close(both, (each[0] + each[1]) / 2)


def test_coherence_matches_hand_calculation():
    rows = documents([[0, 1], [0, 1], [2], [0, 2]])
    topics = double([[0.5, 0.4, 0.1]])
    assert top_words(topics).tolist() == [[0, 1, 2]]
    pairs = [
        math.log(0.5 / (0.75 * 0.5)) / -math.log(0.5),
        math.log(0.25 / (0.75 * 0.5)) / -math.log(0.25),
        -1.0,
    ]
    assert_close(float(coherence(topics, rows)), sum(pairs) / 3)


@pytest.mark.parametrize(
    "name", ["lda_cavi", "lda_svi", "lda_collapsed_gibbs", "lda_collapsed_vb", "lda_sklearn"]
)
def test_one_topic_is_a_smoothed_urn(name):
    """A word without a training document is predicted with its prior."""
    problem = corpus([[0, 0, 1], [1]], test=[[2, 2, 2, 2]])
    inference = component("inference", name)
    state = inference.init(lda(problem, 1), problem, Streams(0))
    posterior = inference.posterior(inference.step(state, problem.train, Streams(0))[0])
    urn = (double([2, 2, 0]) + 0.7) / (4 + 3 * 0.7)
    perplexity = problem.score(posterior, Streams(0))["perplexity"]
    if name == "lda_svi":  # not yet converged
        assert math.isfinite(perplexity)
    else:
        assert_close(posterior.topics[0, 0], urn)
        assert perplexity == pytest.approx(1 / float(urn[2]))


def test_description_and_figures_match_the_corpus():
    problem = small_bars()
    figures = problem.draw(problem.truth, Streams(0))
    assert figures.keys() == {"topics"}
    assert problem.tables(problem.truth, Streams(0)) == {}
    words = corpus()
    assert words.describe()["training documents"] == "4, of which 1 empty"
    table = words.tables(Topics(even()[None], torch.ones(2).double()), Streams(0))["top_words"]
    assert table.words[0].split() == [f"w{j}" for j in even()[0].argsort(descending=True).tolist()]
    chosen = words.held_out(0.5, Streams(0))
    assert (chosen.n, chosen.test.n_rows, chosen.name) == (2, 2, "tiny-validation")


def test_empty_training_or_test_words_are_refused():
    with pytest.raises(
        ConfigMismatchError,
        match=r"the held-out documents of .* are empty; hold out more documents",
    ):
        corpus(test=[[], []])
    with pytest.raises(ConfigMismatchError, match=r"lower dataset\.min_documents"):
        corpus([[], []], n_words=0)
    with pytest.raises(ConfigMismatchError, match=r"validation=.* none of 4 rows .*; lower it"):
        corpus(TINY).held_out(0.99, Streams(0))


@dataclass(frozen=True)
class Bare:
    topics: Tensor
    alpha: Tensor


def test_figures_show_words(tmp_path):
    from components.topics.topic_figure import topic_words

    problem = corpus([[0, 1], [1, 2], [0, 2]])
    words = topic_words(problem, Bare(even(3)[None], torch.ones(3).double()), Streams(0))
    words["topics"].savefig(tmp_path / "topics.png")
