"""Variational factors of documents given topics: a fixed point for each document; compiled on the
CPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.topics.maths import document_loop
from components.topics.maths.collapsed_loop import WordPairs
from components.topics.maths.document_loop import DocumentFactors, DocumentWorkspace


@dataclass(frozen=True)
class Factors:
    """Results of updating the B documents of a batch."""

    gamma: Tensor  # parameters of q(π_d), Dirichlet [B, K]
    fit: Tensor  # Σ_j n_dj log Σ_k exp(ψ(γ_dk)) b_kj [B], j over the different words of d
    stats: Tensor  # Σ_d n_dj φ_djk of every word [V, K]
    passes: Tensor  # updates of γ_d that were made [B]


def fit_documents(
    pairs: tuple[Tensor, Tensor, Tensor],
    b: Tensor,
    alpha: Tensor,
    gamma: Tensor,
    most: int,
    tolerance: float,
) -> Factors:
    """Update γ [B, K] at fixed topics until convergence.

    The updates of a document stop when the mean of |γ' − γ| over k falls below
    ``tolerance``, or after ``most`` updates.

        φ_djk ∝ exp(ψ(γ_dk)) b_kj,   γ_dk ← α_k + Σ_j n_dj φ_djk

    ``pairs`` holds, for each pair of a document and a word in it, document after document,
    the word [M] and its count [M], and then the number of pairs of each document [B].
    b [V, K] is exp E log B, or the topics themselves. φ in ``stats`` and ``fit`` belongs to
    the γ returned. A document without words has γ = α. Both engines agree up to rounding.

    Source: Bardenet (2021), section 5.2.1; Blei, Ng and Jordan (2003), eqs. (6), (7).
    """
    if loops.is_on_cpu(b):
        return _update_factors_compiled(pairs, b, alpha, gamma, most, tolerance)
    return tensors(pairs, b, alpha, gamma, most, tolerance)


def _update_factors_compiled(
    pairs: tuple[Tensor, Tensor, Tensor],
    b: Tensor,
    alpha: Tensor,
    gamma: Tensor,
    most: int,
    tolerance: float,
) -> Factors:
    words, counts, lengths = pairs
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    exact = b.double().contiguous()
    gamma, (B, K) = gamma.double().clone(), gamma.shape
    room = document_loop.WIDTH * (1 + int(lengths.max() if B else 0) // document_loop.WIDTH)
    stats = torch.zeros_like(exact)
    fit = exact.new_empty(B)
    passes = torch.empty(B, dtype=torch.int64)
    shapes = ((K,), (K, room), (room,), (room,), (room,))
    document_loop.loop()(
        WordPairs(starts.numpy(), words.numpy(), counts.numpy()),
        exact.numpy(),
        alpha.double().numpy(),
        most,
        tolerance,
        DocumentFactors(gamma.numpy(), stats.numpy(), fit.numpy(), passes.numpy()),
        DocumentWorkspace(*(exact.new_empty(shape).numpy() for shape in shapes)),
    )
    return Factors(gamma.to(b), fit.to(b), (stats * exact).to(b), passes)


def tensors(
    pairs: tuple[Tensor, Tensor, Tensor],
    b: Tensor,
    alpha: Tensor,
    gamma: Tensor,
    most: int,
    tolerance: float,
) -> Factors:
    """``fit_documents`` without compiled loops, as one batch; converged documents are frozen."""
    words, counts, lengths = pairs
    gamma = torch.where((lengths > 0)[:, None], gamma, alpha)
    rows = torch.arange(len(lengths), device=b.device).repeat_interleave(lengths)
    local = b[words]
    n = counts.to(b.dtype)  # [M, K], [M]
    is_running = lengths > 0
    passes = torch.zeros_like(lengths)
    for _ in range(most):
        t = gamma.digamma().exp()
        ratio = n / (t[rows] * local).sum(1)
        new = alpha + t * torch.zeros_like(gamma).index_add_(0, rows, ratio[:, None] * local)
        change = (new - gamma).abs().mean(1)
        gamma = torch.where(is_running[:, None], new, gamma)
        passes = passes + is_running
        is_running = is_running & (change >= tolerance)
        if not is_running.any():
            break
    t = gamma.digamma().exp()
    norm = (t[rows] * local).sum(1)
    fit = torch.zeros_like(gamma[:, 0]).index_add_(0, rows, n * norm.log())
    share = t[rows] * local * (n / norm)[:, None]
    return Factors(gamma, fit, torch.zeros_like(b).index_add_(0, words, share), passes)
