"""Collapsed topic models: sweeps of a Gibbs sampler, and passes of variational Bayes."""

from __future__ import annotations

import torch
from torch import Tensor

from components.topics.maths import collapsed_loop
from components.topics.maths.collapsed_loop import ExpectedCounts, WordPairs


def document_offsets(lengths: Tensor) -> Tensor:
    """Start offset of each document, and the end of the last one [B + 1]."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def word_counts(words: Tensor, z: Tensor, V: int, K: int) -> Tensor:
    """Count occurrences n_vk of word v with topic k, [V, K] long, from words [M] and their topics z
    [M]."""
    return torch.bincount(words * K + z, minlength=V * K).view(V, K)


def sweep(
    words: Tensor, totals: Tensor, z: Tensor, u: Tensor, alpha: Tensor, eta: Tensor
) -> Tensor:
    """Return z [M] after one sweep of a Gibbs sampler over all words of all documents.

        p(z_i = k | z without i, y) ∝ (α_k + n_dk)(η_w + n_wk) / (Σ η + n_k),   counts without i

    words [M] of documents with ``totals`` [B] words each; u [M] uniform in [0, 1).  It runs on the
    CPU; counts are recomputed from z, so that rounding does not accumulate.

    Source: Griffiths and Steyvers (2004), eq. (5)."""
    z = z.clone()
    n = word_counts(words, z, len(eta), len(alpha))
    alpha = alpha.double()
    eta = eta.double()
    inverse = torch.arange(len(words) + 1, dtype=torch.float64).add_(eta.sum()).reciprocal_()
    work = [torch.empty_like(alpha) for _ in range(3)]
    arrays = (
        document_offsets(totals),
        words,
        z,
        u,
        alpha,
        n + eta[:, None],
        n.sum(0),
        inverse,
        *work,
    )
    collapsed_loop.gibbs(*[x.numpy() for x in arrays])
    return z


def sum_by_word(words: Tensor, values: Tensor, V: int) -> Tensor:
    """Sum values [M, K] over the pairs of each word -> [V, K]."""
    return values.new_zeros(V, values.shape[1]).index_add_(0, words, values)


def update_responsibilities(
    pairs: tuple[Tensor, Tensor, Tensor],
    phi: Tensor,
    alpha: Tensor,
    eta: Tensor,
    second_order: bool,
) -> Tensor:
    """Return φ [M, K] after one pass of collapsed variational Bayes over the pairs (document,
    word), on the CPU.

        φ_djk ∝ (α_k + E n_dk)(η_j + E n_jk) / (Σ η + E n_k)
                · exp(V n_k / 2(Σ η + E n_k)² − V n_dk / 2(α_k + E n_dk)² − V n_jk / 2(η_j + E n_jk)²)

    E and V are moments of counts without one of the n_dj words of the pair, which share φ: sums of
    φ and of φ(1 − φ). The second line is used only if ``second_order``.

    Source: Teh, Newman and Welling (2007) (CVB); Asuncion, Welling, Smyth and Teh (2009) (CVB0)."""
    words, counts, lengths = pairs
    phi = phi.clone()
    n = counts.double()
    alpha = alpha.double()
    eta = eta.double()
    mean = sum_by_word(words, n[:, None] * phi, len(eta))
    spread = sum_by_word(words, n[:, None] * phi * (1 - phi), len(eta))
    by_word = mean + eta[:, None]
    by_topic = mean.sum(0) + eta.sum()
    topic_spread = spread.sum(0)
    own, own_spread, new = torch.empty(3, len(alpha), dtype=alpha.dtype).numpy()
    collapsed_loop.collapsed_vb(
        WordPairs(document_offsets(lengths).numpy(), words.numpy(), n.numpy()),
        phi.numpy(),
        alpha.numpy(),
        second_order,
        ExpectedCounts(by_word.numpy(), by_topic.numpy(), spread.numpy(), topic_spread.numpy()),
        (own, own_spread, new),
    )
    return phi
