"""Compiled updates of variational factors of documents given topics, one document after the
other."""

from __future__ import annotations

import math
from typing import NamedTuple

from components.maths.compiled.functions import exp_digamma
from components.maths.compiled.loops import Array, compiled
from components.topics.maths.collapsed_loop import WordPairs

WIDTH = 8  # pairs of a document are padded to a multiple of this, for loops without remainder


def gather_columns(words: Array, counts: Array, b: Array, local: Array, n: Array) -> int:
    """Copy b_kw of a document's M words to local [K, …], and their counts; return their number with
    padding."""
    m = len(words)
    wide = (m + WIDTH - 1) // WIDTH * WIDTH
    for j in range(m):
        n[j] = counts[j]
        row = b[words[j]]
        for k in range(b.shape[1]):
            local[k, j] = row[k]
    for j in range(m, wide):
        n[j] = 0.0
        for k in range(b.shape[1]):
            local[k, j] = 1.0
    return wide


def shares(t: Array, local: Array, wide: int, n: Array, norm: Array, ratio: Array) -> None:
    """Compute norm_j = Σ_k t_k b_kj and n_j / norm_j."""
    first = local[0]
    for j in range(wide):
        norm[j] = t[0] * first[j]
    for k in range(1, len(t)):
        tk = t[k]
        row = local[k]
        for j in range(wide):
            norm[j] += tk * row[j]
    for j in range(wide):
        ratio[j] = n[j] / norm[j]


def update_gamma(
    t: Array, local: Array, wide: int, ratio: Array, alpha: Array, gamma: Array
) -> float:
    """Update γ_k ← α_k + t_k Σ_j b_kj ratio_j; return the sum of the absolute changes."""
    change = 0.0
    for k in range(len(t)):
        row = local[k]
        total = 0.0
        for j in range(wide):
            total += row[j] * ratio[j]
        new = alpha[k] + t[k] * total
        change += abs(new - gamma[k])
        gamma[k] = new
    return change


def weights(gamma: Array, t: Array) -> None:
    """Compute t_k = exp ψ(γ_k)."""
    for k in range(len(t)):
        t[k] = exp_digamma(gamma[k])


class DocumentFactors(NamedTuple):
    """Results: γ is replaced in place, and stats are added."""

    gamma: Array  # [B, K]
    stats: Array  # [V, K]
    fit: Array  # [B]
    passes: Array  # [B]


class DocumentWorkspace(NamedTuple):
    """Arrays for one document of at most M words, padded."""

    t: Array  # [K]
    local: Array  # [K, M]
    n: Array  # [M]
    norm: Array  # [M]
    ratio: Array  # [M]


@compiled(fast=True, inline=True)
def fit_documents(
    pairs: WordPairs,
    b: Array,
    alpha: Array,
    most: int,
    tolerance: float,
    factors: DocumentFactors,
    work: DocumentWorkspace,
) -> None:
    """See ``document_factors.fit_documents``."""
    starts, words, counts = pairs
    gamma, stats, fit, passes = factors
    t, local, n, norm, ratio = work
    K = len(alpha)
    for d in range(len(gamma)):
        lo = starts[d]
        hi = starts[d + 1]
        if lo == hi:
            for k in range(K):
                gamma[d, k] = alpha[k]
            fit[d] = 0.0
            passes[d] = 0
            continue
        wide = gather_columns(words[lo:hi], counts[lo:hi], b, local, n)
        gamma_d = gamma[d]
        n_passes = 0
        while n_passes < most:
            weights(gamma_d, t)
            shares(t, local, wide, n, norm, ratio)
            change = update_gamma(t, local, wide, ratio, alpha, gamma_d)
            n_passes += 1
            if change < tolerance * K:
                break
        weights(gamma_d, t)
        shares(t, local, wide, n, norm, ratio)
        total = 0.0
        for j in range(hi - lo):
            total += n[j] * math.log(norm[j])
            row = stats[words[lo + j]]
            for k in range(K):
                row[k] += t[k] * ratio[j]
        fit[d] = total
        passes[d] = n_passes
