"""Variational factors of documents given topics: a fixed point for each document."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.compiled.loops import to_array
from components.topics.maths import document_loop
from components.topics.maths.collapsed import document_offsets
from components.topics.maths.collapsed_loop import WordPairs
from components.topics.maths.document_loop import DocumentFactors, DocumentWorkspace


@dataclass(frozen=True)
class Factors:
    """Results of updating the B documents of a batch."""

    gamma: Tensor  # parameters of q(π_d), Dirichlet [B, K]
    fit: Tensor  # Σ_j n_dj log Σ_k exp(ψ(γ_dk)) b_kj [B], j over the distinct words of d
    stats: Tensor  # Σ_d n_dj φ_djk of each word [V, K]
    passes: Tensor  # number of updates of γ_d [B]


def fit_documents(
    pairs: tuple[Tensor, Tensor, Tensor],
    b: Tensor,
    alpha: Tensor,
    gamma: Tensor,
    most: int,
    tolerance: float,
) -> Factors:
    """Update γ [B, K] at fixed topics until convergence.

    The updates of a document stop when the mean of |γ' − γ| over k is below ``tolerance``, or after
    ``most`` updates.

        φ_djk ∝ exp(ψ(γ_dk)) b_kj,   γ_dk ← α_k + Σ_j n_dj φ_djk

    ``pairs`` contains the word [M] and the count [M] of each pair (document, word), in order of
    documents, and the number of pairs of each document [B]. b [V, K] is exp E log B, or the topics
    themselves. φ in ``stats`` and ``fit`` belongs to the γ returned. A document without words has γ
    = α. Computed on the CPU, in float64.

    Source: Bardenet (2021), section 5.2.1; Blei, Ng and Jordan (2003), eqs. (6), (7).
    """
    words, counts, lengths = (x.cpu() for x in pairs)
    exact = b.double().cpu().contiguous()
    out = gamma.to(exact, copy=True)
    B, K = out.shape
    width = document_loop.WIDTH * (1 + int(lengths.max() if B else 0) // document_loop.WIDTH)
    stats = torch.zeros_like(exact)
    fit = exact.new_empty(B)
    passes = torch.empty(B, dtype=torch.int64)
    shapes = ((K,), (K, width), (width,), (width,), (width,))
    document_loop.fit_documents(
        WordPairs(document_offsets(lengths).numpy(), words.numpy(), counts.numpy()),
        exact.numpy(),
        to_array(alpha.double()),
        most,
        tolerance,
        DocumentFactors(out.numpy(), stats.numpy(), fit.numpy(), passes.numpy()),
        DocumentWorkspace(*(exact.new_empty(shape).numpy() for shape in shapes)),
    )
    return Factors(out.to(b), fit.to(b), (stats * exact).to(b), passes.to(b.device))
