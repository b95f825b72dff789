"""Simulated documents with topics that are rows and columns of a square of pixels."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.registry import register
from components.topics.corpus import Corpus, Topics, count_words
from components.topics.topic_figure import topic_images


def bar_topics(side: int) -> Tensor:
    """2 side topics over side² pixels [K, V], uniform over each row, then over each column."""
    rows = torch.eye(side, dtype=torch.float64).repeat_interleave(side, 1)
    columns = torch.eye(side, dtype=torch.float64).repeat(1, side)
    return torch.cat([rows, columns]) / side


def sample_word_counts(
    topics: Tensor, alpha: float, n: int, length: int, generator: torch.Generator
) -> Tensor:
    """Sample counts [n, V] of documents of ``length`` words: π ~ Dir(α), words from Σ_k π_k B_k."""
    full = torch.full((n, len(topics)), alpha, dtype=torch.float64)
    shares = torch._standard_gamma(full, generator=generator)
    p = (shares / shares.sum(1, keepdim=True)) @ topics
    words = torch.multinomial(p, length, replacement=True, generator=generator)
    return torch.zeros_like(p).scatter_add_(1, words, torch.ones_like(words, dtype=p.dtype))


@register("dataset", "bars")
class Bars(Dataset[Corpus]):
    """Documents drawn from 2 s topics over the s² pixels of a square, uniform over its rows and its
    columns.

        π_i ~ Dir(α 1),   z_iℓ ~ Cat(π_i),   y_iℓ ~ B_{z_iℓ},   B_k = 1/s on the pixels of bar k

    The true topics are known: their perplexity, and the distance of estimated topics from them, are
    scores. Training and held-out documents are drawn independently for each seed. K = 2 s, V = s².

    Source: Griffiths and Steyvers (2004), a graphical example (10 topics of 5 × 5 pixels)."""

    kind = "unlabelled"
    values = "count"
    side: PositiveInt
    n_train: PositiveInt
    n_test: PositiveInt
    length: PositiveInt
    alpha: PositiveFloat
    batch_size: PositiveInt | None

    def load(self, rng: Rng, setting: Setting) -> Corpus:
        topics = bar_topics(self.side)
        n = self.n_train + self.n_test
        table = sample_word_counts(topics, self.alpha, n, self.length, rng.data).to(setting.device)
        like = setting.tensor([])
        truth = Topics(topics.to(like)[None], torch.full((len(topics),), self.alpha).to(like))
        return Corpus(
            name=self.name,
            train=count_words(table[: self.n_train]),
            test=count_words(table[self.n_train :]),
            vocabulary=[f"{i + 1},{j + 1}" for i in range(self.side) for j in range(self.side)],
            like=like,
            rng=rng.data,
            batch_size=self.batch_size,
            truth=truth,
            image_shape=(self.side, self.side),
            figures=[topic_images],
        )
