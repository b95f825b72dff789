"""The order of words in a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping


def most_common_words(counts: Mapping[str, int], n: int | None) -> list[str]:
    """The n words that are counted most often (None: all), of equals the first of the alphabet."""
    return sorted(counts, key=lambda word: (-counts[word], word))[:n]
