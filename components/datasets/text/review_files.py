"""Film reviews as lists of words: the polarity dataset, and a simulated corpus of its size."""

from __future__ import annotations

import functools
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

REVIEWS = "text/review_polarity.tar.gz"  # path in the catalogue
EACH = 1_000  # reviews of a class
# Of the simulated corpus: its words, and the mean length of a review (the genuine ones: 50,920 and
# 747).
SIMULATED_WORDS = 2_000
LENGTH = 200


@dataclass(frozen=True)
class Reviews:
    """Texts in the order of the archive's numbers, first those against, then those for."""

    # [N] of as many tokens as a text has, punctuation among them
    words: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...]  # [N], 1: for the film
    folds: tuple[int, ...]  # [N], 0 … 9: the hundreds of the number, the folds of the authors


def reviews(path: Path | None) -> Reviews:
    """The reviews of an archive, or simulated ones without a ``path`` (None)."""
    return simulated_reviews() if path is None else read(path)


@functools.lru_cache(maxsize=1)
def read(path: Path) -> Reviews:
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
    return Reviews(
        tuple(w for *_, w in entries),
        tuple(y for y, *_ in entries),
        tuple(n // 100 for _, n, _ in entries),
    )


@functools.lru_cache(maxsize=1)
def simulated_reviews() -> Reviews:
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
    words = tuple(tuple(f"word{j}" for j in js) for js in word_ids)
    return Reviews(
        words, tuple(labels.tolist()), tuple((np.arange(len(labels)) % EACH // 100).tolist())
    )
