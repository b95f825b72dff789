"""Film reviews as lists of words: the polarity dataset, or a simulated corpus of its size."""

from __future__ import annotations

import functools
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

REVIEWS = "text/review_polarity.tar.gz"  # path in the catalogue
EACH = 1_000  # reviews per class
# Simulated corpus: number of distinct words and mean length of a review (genuine: 50,920 and 747).
SIMULATED_WORDS = 2_000
LENGTH = 200


class Review(NamedTuple):
    """A text and its class."""

    words: tuple[str, ...]  # all tokens, including punctuation
    label: int  # 1: positive
    fold: int  # 0 … 9: the hundreds of its number, the authors' folds


def reviews(*archive: Path) -> list[Review]:
    """The reviews of an archive, or else simulated ones: first negative, then positive ones, in the
    order of their numbers."""
    return read(*archive) if archive else simulated_reviews()


@functools.lru_cache(maxsize=1)
def read(path: Path) -> list[Review]:
    """All texts of the archive: txt_sentoken/neg/cv123_….txt is negative review 123."""
    entries: list[tuple[int, int, tuple[str, ...]]] = []
    with tarfile.open(path) as archive:
        for member in archive:
            *_, kind, name = (
                Path(member.name).parts if "/" in member.name else ("", "", member.name)
            )
            content = archive.extractfile(member) if name.endswith(".txt") else None
            if content is not None:
                words = content.read().decode("latin-1").split()
                entries.append((int(kind == "pos"), int(name[2:5]), tuple(words)))
    entries.sort()
    return [Review(words, label, number // 100) for label, number, words in entries]


@functools.lru_cache(maxsize=1)
def simulated_reviews() -> list[Review]:
    """A fixed simulated corpus, independent of the seed of a run.

    Words follow Zipf's law, tilted by class, and lengths a Poisson distribution.
    """
    rng = np.random.default_rng([*b"reviews-sim"])
    tilt = rng.normal(0.0, 0.4, SIMULATED_WORDS)  # towards positive (+) or negative
    logits = -np.log(np.arange(SIMULATED_WORDS) + 5.0) + np.array([-0.5, 0.5])[:, None] * tilt
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)  # [2, words]
    labels = np.repeat([0, 1], EACH)
    lengths = 1 + rng.poisson(LENGTH - 1, len(labels))
    word_ids = [
        rng.choice(SIMULATED_WORDS, n, p=p[y]) for n, y in zip(lengths, labels, strict=True)
    ]
    return [
        Review(tuple(f"word{j}" for j in js), i // EACH, i % EACH // 100)
        for i, js in enumerate(word_ids)
    ]
