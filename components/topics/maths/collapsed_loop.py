"""Compiled sweeps over the words of documents, with proportions and topics integrated out."""

from __future__ import annotations

import math
from typing import NamedTuple

from components.maths.compiled.loops import Array, compiled


class WordPairs(NamedTuple):
    """Distinct words of each document, in order of documents."""

    starts: Array  # offset of each document, and the end of the last one [B + 1]
    words: Array  # [M]
    counts: Array  # of each word in its document [M]


class ExpectedCounts(NamedTuple):
    """Prior and expected counts of words and topics, and the variances of these counts."""

    by_word: Array  # η_v + E n_vk [V, K]
    by_topic: Array  # Σ η + E n_k [K]
    word_spread: Array  # [V, K]
    topic_spread: Array  # [K]


@compiled(inline=True)
def gibbs(
    starts: Array,
    words: Array,
    z: Array,
    u: Array,
    alpha: Array,
    by_word: Array,
    n_k: Array,
    inverse: Array,
    own: Array,
    ratio: Array,
    cumulative: Array,
) -> None:
    """Run one sweep z_i ~ p(z_i | z without z_i, y) over all words, in place.

    by_word [V, K] is η_v + n_vk, n_k [K] are integers, inverse [M + 1] is 1 / (Σ η + n) for every
    n; u [M] are uniform. The ratio (α_k + n_dk) / (Σ η + n_k) changes for two topics per word, so
    that the loop over topics needs no division."""
    K = len(alpha)
    for d in range(len(starts) - 1):
        lo = starts[d]
        hi = starts[d + 1]
        for k in range(K):
            own[k] = alpha[k]
        for i in range(lo, hi):
            own[z[i]] += 1.0
        for k in range(K):
            ratio[k] = own[k] * inverse[n_k[k]]
        for i in range(lo, hi):
            row = by_word[words[i]]
            k = z[i]
            own[k] -= 1.0
            row[k] -= 1.0
            n_k[k] -= 1
            ratio[k] = own[k] * inverse[n_k[k]]
            total = 0.0
            for k in range(K):
                total += ratio[k] * row[k]
                cumulative[k] = total
            target = u[i] * total
            new = 0
            while cumulative[new] <= target and new < K - 1:
                new += 1
            z[i] = new
            own[new] += 1.0
            row[new] += 1.0
            n_k[new] += 1
            ratio[new] = own[new] * inverse[n_k[new]]


@compiled(inline=True)
def collapsed_vb(
    pairs: WordPairs,
    phi: Array,
    alpha: Array,
    second: bool,
    expected: ExpectedCounts,
    work: tuple[Array, Array, Array],
) -> None:
    """Run one pass over the pairs (document, word), φ [M, K] in place."""
    starts, words, counts = pairs
    by_word, by_topic, word_spread, topic_spread = expected
    own, own_spread, new = work
    K = len(alpha)
    for d in range(len(starts) - 1):
        lo = starts[d]
        hi = starts[d + 1]
        for k in range(K):
            own[k] = alpha[k]
            own_spread[k] = 0.0
        for j in range(lo, hi):
            for k in range(K):
                own[k] += counts[j] * phi[j, k]
                own_spread[k] += counts[j] * phi[j, k] * (1.0 - phi[j, k])
        for j in range(lo, hi):
            n = counts[j]
            w = words[j]
            total = 0.0
            for k in range(K):
                p = phi[j, k]
                a = own[k] - p
                b = by_word[w, k] - p
                c = by_topic[k] - p
                new[k] = a * b / c
                if second:
                    v = p * (1.0 - p)
                    new[k] *= math.exp(
                        (topic_spread[k] - v) / (2 * c * c)
                        - (own_spread[k] - v) / (2 * a * a)
                        - (word_spread[w, k] - v) / (2 * b * b)
                    )
                total += new[k]
            for k in range(K):
                p = phi[j, k]
                q = new[k] / total
                by = n * (q - p)
                spread = n * (q * (1.0 - q) - p * (1.0 - p))
                phi[j, k] = q
                own[k] += by
                by_word[w, k] += by
                by_topic[k] += by
                own_spread[k] += spread
                word_spread[w, k] += spread
                topic_spread[k] += spread
