"""Texts as counts: vocabulary, skipped words, and the simulated replacement of a corpus."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from support.runs.configured import component, load

from components.datasets.text.review_files import simulated_reviews
from components.topics.counted_corpus import build_vocabulary, to_word_counts
from runner.execution.rng import Streams

TEXTS = [["a", "b", "b"], ["b", "c"], ["b"], ["d", "d", "c"]]


def test_vocabulary_matches_hand_calculation():
    assert build_vocabulary(TEXTS, None, 1, 1.0, frozenset()) == ["b", "c", "a", "d"]
    assert build_vocabulary(TEXTS, None, 2, 1.0, frozenset()) == ["b", "c"]
    assert build_vocabulary(TEXTS, None, 1, 0.5, frozenset("a")) == ["c", "d"]
    assert build_vocabulary(TEXTS, 1, 1, 1.0, frozenset()) == ["b"]


def test_counts_match_hand_calculation():
    counts = to_word_counts(TEXTS, ["b", "d"])
    assert counts.words.tolist() == [0, 0, 0, 1]
    assert counts.counts.tolist() == [2, 1, 1, 2]
    assert counts.lengths.tolist() == [1, 1, 1, 1]
    # a document without remaining words is kept
    assert to_word_counts([["z"], ["b"]], ["b"]).lengths.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("corpus", "name", "n"), [("sms_spam", "sms-sim", 5574), ("reviews", "reviews-sim", 2000)]
)
def test_simulated_corpora_have_their_sizes(corpus, name, n):
    problem, _ = load("word_counts", corpus=corpus, simulated=True, n_words=50, min_documents=1)
    assert (
        problem.name
        == name
        == component("dataset", "word_counts", corpus=corpus, simulated=True).identity(Path(), True)
    )
    assert problem.train.n_rows + problem.test.n_rows == n
    assert problem.n_words == 50


def test_vocabulary_uses_only_training_texts():
    problem, _ = load(
        "word_counts",
        corpus="reviews",
        simulated=True,
        n_train=20,
        n_words=None,
        min_documents=3,
        max_share=0.4,
    )
    texts = [review.words for review in simulated_reviews()]
    order = torch.randperm(len(texts), generator=Streams(0).data)
    counts = Counter(word for i in order[500:520].tolist() for word in set(texts[i]))
    assert set(problem.vocabulary) == {word for word, n in counts.items() if 3 <= n <= 8}
    first = Counter(texts[order[500]])
    of_first = problem.train.part(slice(0, 1), 1.0)
    assert {
        problem.vocabulary[w]: c
        for w, c in zip(of_first.words.tolist(), of_first.counts.tolist(), strict=True)
    } == {word: n for word, n in first.items() if word in problem.vocabulary}
    words_shown = {word for i in order[500:520].tolist() for word in texts[i]}
    assert problem.left_out == sum(
        word not in words_shown for i in order[:500].tolist() for word in texts[i]
    )
