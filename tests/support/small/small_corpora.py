"""Small corpora with enumerable assignments of topics, and models of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from support.runs.configured import F64, component, load
from torch import Tensor

from components.contracts.problems import Counts
from components.topics.corpus import Corpus

TINY = ([0, 0, 1], [], [1, 2, 2], [2])  # documents of words of V = 3, one of them empty


def documents(rows: Sequence[Sequence[int]]) -> Counts:
    """Lists of words as counts."""
    pairs = [sorted(Counter(row).items()) for row in rows]
    words, counts = (
        torch.tensor([pair[i] for row in pairs for pair in row], dtype=torch.int64) for i in (0, 1)
    )
    return Counts(words, counts, torch.tensor([len(row) for row in pairs]), 1.0)


def corpus(
    rows: Sequence[Sequence[int]] = TINY,
    n_words: int = 3,
    batch_size: int | None = None,
    test: Sequence = TINY,
) -> Corpus:
    like = torch.zeros((), dtype=F64)
    generator = torch.Generator().manual_seed(0)
    vocabulary = [f"w{j}" for j in range(n_words)]
    return Corpus("tiny", documents(rows), documents(test), vocabulary, like, generator, batch_size)


def small_bars(**changes):
    """Corpora of bars of 3 × 3 pixels, and streams of them."""
    return load("bars", 0, **{"side": 3, "n_train": 60, "n_test": 40, "length": 30} | changes)[0]


def lda(problem: Corpus, n_topics: int = 2, alpha: float = 0.4, eta: float = 0.7):
    return component("model", "lda", n_topics=n_topics, alpha=alpha, eta=eta).build(problem, None)


def words_of(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Concatenated words and their documents, each document's in ascending order [M]."""
    pairs = [(d, w) for d, row in enumerate(rows) for w in sorted(row)]
    return torch.tensor([w for _, w in pairs]), torch.tensor([d for d, _ in pairs])


def assignments(n: int, K: int) -> Iterator[tuple[int, ...]]:
    """All K^n topics of n words."""
    return itertools.product(range(K), repeat=n)


def log_urns(
    words: Sequence[int], docs: Sequence[int], z: Sequence[int], alpha: Tensor, eta: Tensor
) -> float:
    """log p(y, z), word by word: each is drawn from the urns filled by the previous ones."""
    by_doc: Counter = Counter()
    by_topic: Counter = Counter()
    total = torch.zeros((), dtype=F64)
    for w, d, k in zip(words, docs, z, strict=True):
        in_doc = sum(by_doc[d, j] for j in range(len(alpha)))
        in_topic = sum(by_topic[k, v] for v in range(len(eta)))
        total += ((alpha[k] + by_doc[d, k]) / (alpha.sum() + in_doc)).log()
        total += ((eta[w] + by_topic[k, w]) / (eta.sum() + in_topic)).log()
        by_doc[d, k] += 1
        by_topic[k, w] += 1
    return float(total)
