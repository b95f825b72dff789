"""Conversion of texts to a corpus of word counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import BaseModel, PositiveInt

from components.contracts.problems import Counts
from components.contracts.roles import AboveZeroToOne, BetweenZeroAndOne, Setting
from components.contracts.streams import Rng
from components.datasets.text.mail_files import held_out
from components.datasets.text.vocabulary import most_common_words
from components.topics.corpus import Corpus
from components.topics.topic_figure import topic_words

StopWords = Literal["none", "english"]
Documents = Sequence[Sequence[str]]


def build_vocabulary(
    documents: Documents, n: int | None, at_least: int, at_most: float, left_out: frozenset[str]
) -> list[str]:
    """Return the n words in most documents (all if None), ties in alphabetical order, among words
    outside ``left_out`` in at least ``at_least`` documents and at most a share ``at_most`` of
    them."""
    counts = Counter(word for document in documents for word in set(document))
    limit = at_most * len(documents)
    word_counts = {
        word: n for word, n in counts.items() if at_least <= n <= limit and word not in left_out
    }
    return most_common_words(word_counts, n)


def to_word_counts(documents: Documents, vocabulary: Sequence[str]) -> Counts:
    """Count words of the vocabulary in each document; other words are skipped."""
    number = {word: j for j, word in enumerate(vocabulary)}
    rows = [
        sorted(Counter(number[w] for w in document if w in number).items())
        for document in documents
    ]
    words, counts = (
        torch.tensor([pair[i] for row in rows for pair in row], dtype=torch.int64) for i in (0, 1)
    )
    return Counts(words, counts, torch.tensor([len(row) for row in rows]), 1.0)


class CountingKeys(BaseModel):
    """Keys of a data set with texts as word counts."""

    n_words: PositiveInt | None
    min_documents: PositiveInt
    max_share: AboveZeroToOne
    stop_words: StopWords
    test_share: BetweenZeroAndOne
    n_train: PositiveInt | None
    batch_size: PositiveInt | None


def build_corpus(
    documents: Documents, keys: CountingKeys, name: str, rng: Rng, setting: Setting
) -> Corpus:
    """Build a corpus of training and held-out documents, with the vocabulary of the former.

    Raises:
        ConfigMismatchError: there is no training or no held-out word."""
    rows = held_out(len(documents), keys.test_share, keys.n_train, rng.data)
    train, test = ([documents[i] for i in part.tolist()] for part in rows)
    stop = frozenset[str]()
    if keys.stop_words == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        stop = frozenset(ENGLISH_STOP_WORDS)
    every, rare = (
        build_vocabulary(train, None, keys.min_documents, share, stop)
        for share in (1.0, keys.max_share)
    )
    vocabulary = rare[: keys.n_words]
    about = {}
    if common := sorted(set(every) - set(rare)):
        names = ", ".join(common[:5]) + ", …" * (len(common) > 5)
        about["very frequent words"] = f"{len(common)}, excluded by dataset.max_share: {names}"
    counts = [to_word_counts(part, vocabulary).to(setting.device) for part in (train, test)]
    train_words = {word for document in train for word in document}
    return Corpus(
        name=name,
        train=counts[0],
        test=counts[1],
        vocabulary=vocabulary,
        like=setting.tensor([]),
        rng=rng.data,
        batch_size=keys.batch_size,
        figures=[topic_words],
        about=about,
        left_out=sum(word not in train_words for document in test for word in document),
    )
