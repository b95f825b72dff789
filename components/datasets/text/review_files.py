"""Film reviews as lists of words: the polarity dataset, and a simulated corpus of its size."""

from __future__ import annotations

import functools
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

REVIEWS = "text/review_polarity.tar.gz"  # path in the catalogue
EACH = 1_000  # reviews of a class
# Of the simulated corpus: its words, and the mean length of a review (the genuine ones: 50,920 and
# 747).
SIMULATED_WORDS = 2_000
LENGTH = 200


class Review(NamedTuple):
    """A text and its class."""

    words: tuple[str, ...]  # as many tokens as it has, punctuation among them
    label: int  # 1: for the film
    fold: int  # 0 … 9: the hundreds of its number, the folds of the authors


def reviews(*archive: Path) -> list[Review]:
    """The reviews of an archive, or simulated ones without one, first those against, then those
    for, in the order of their numbers."""
    return read(*archive) if archive else simulated_reviews()


@functools.lru_cache(maxsize=1)
def read(path: Path) -> list[Review]:
    """All texts of the archive: txt_sentoken/neg/cv123_….txt is number 123 of those against."""
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
    """One fixed corpus, independent of the seed of a run.

    Words follow Zipf's law, tilted by class, and lengths a Poisson law.
    """
    rng = np.random.default_rng([*b"reviews-sim"])
    tilt = rng.normal(0.0, 0.4, SIMULATED_WORDS)  # towards praise (+) or away from it
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
