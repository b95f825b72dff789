"""The order of words in a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping


def most_common_words(counts: Mapping[str, int], n: int | None) -> list[str]:
    """The n most frequent words (all if None), with ties in alphabetical order."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:n]
