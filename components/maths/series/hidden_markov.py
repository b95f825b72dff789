"""Log-domain sums over the paths of a hidden Markov chain, for K sets of probabilities.

The product of all T matrices of a chain is computed in pairs, in ⌈log₂ T⌉ rounds,
instead of one factor after the other: a round is one operation for all pairs, and T
small operations would take longer than their arithmetic.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_product(left: Tensor, right: Tensor) -> Tensor:
    """log Σ_j exp(L_ij + R_jk) of log matrices [..., S, S]: the logarithm of a matrix product."""
    return torch.logsumexp(left.unsqueeze(-1) + right.unsqueeze(-3), -2)


def log_chain(matrices: Tensor) -> Tensor:
    """The logarithm of M_1 M_2 ⋯ M_T from log M_t [K, T, S, S] -> [K, S, S], in their order."""
    while (times := matrices.shape[1]) > 1:
        pairs = log_product(matrices[:, 0 : times - 1 : 2], matrices[:, 1:times:2])
        matrices = torch.cat([pairs, matrices[:, times - 1 :]], 1) if times % 2 else pairs
    return matrices[:, 0]


def forward(log_start: Tensor, log_transition: Tensor, log_seen: Tensor) -> Tensor:
    """log p(x_1:T, z_T = j) by the forward algorithm, for each last state j.

        α_1(j) = π_j p(x_1 | j),   α_t(j) = Σ_i α_{t−1}(i) A_ij p(x_t | j)

    log π [K, S] or [S], log A [K, S, S], log p(x_t | z_t = j) [K, T, S], 0 where nothing is seen ->
    [K, S].

    Source: Rabiner (1989), eqs. (19), (20)."""
    first = log_start + log_seen[:, 0]  # α_1  # [K, S]
    if log_seen.shape[1] == 1:
        return first
    # log A_ij p(x_t | j)  # [K, T − 1, S, S]
    onward = log_transition.unsqueeze(1) + log_seen[:, 1:].unsqueeze(2)
    return torch.logsumexp(first.unsqueeze(-1) + log_chain(onward), -2)  # eq. (20)


def ahead(log_weights: Tensor, log_transition: Tensor, horizon: int) -> Tensor:
    """log Pr(z_{T+h} | x_1:T), h = 1 … H, from α_T [K, S] or anything proportional to it -> [K, H,
    S]."""
    now = log_weights.log_softmax(-1)
    log_probs = []
    for _ in range(horizon):
        now = torch.logsumexp(now.unsqueeze(-1) + log_transition, -2)
        log_probs.append(now)
    return torch.stack(log_probs, 1)
