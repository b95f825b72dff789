"""Several draws from each of many categorical distributions, for backward simulation."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def distinct(chosen: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Distinct numbers among the chosen ones, and the position of each chosen number.

    Input [R, M] with values in 0 … n−1 -> [R, K], [R, M].
    chosen[r, m] = different[r, place[r, m]]; rows with fewer than K distinct numbers are padded
    with their first.
    """
    r = len(chosen)
    is_chosen = chosen.new_zeros(r, n, dtype=torch.bool).scatter_(1, chosen, True)
    place = is_chosen.long().cumsum(1) - 1  # [R, n]
    k = int(place[:, -1].max()) + 1
    first = is_chosen.int().argmax(1, keepdim=True)
    different = first.expand(r, k).clone()
    row, number = is_chosen.nonzero(as_tuple=True)
    different[row, place[row, number]] = number
    return different, place.gather(1, chosen)


def inverse_cdf(p: Tensor, rows: Tensor, u: Tensor) -> Tensor:
    """The categories at which the cumulative probabilities of row ``rows``[r, m] of p first exceed
    u[r, m]; [R, M].

    p [R, K, N], rows sum to 1; u in [0, 1).  Sums are computed at two levels, over blocks of √N and
    within the selected block: O(N) per row of p and O(√N) per draw, as products with triangular
    matrices, which are faster than a running sum."""
    r, k, n = p.shape
    size = math.isqrt(n - 1) + 1
    blocks = -(-n // size)
    if blocks * size != n:
        p = torch.nn.functional.pad(p, (0, blocks * size - n))
    p = p.reshape(r * k * blocks, size)
    row = (rows + k * torch.arange(r, device=p.device).unsqueeze(1)).flatten()  # of R·K  # [R·M]
    below = _running_sums(p.sum(1).view(r * k, blocks)).index_select(0, row)  # [R·M, blocks]
    target = u.flatten().unsqueeze(1).to(p) * below[:, -1:]
    block = (below <= target).sum(1, keepdim=True).clamp_(max=blocks - 1)
    sum_before = torch.nn.functional.pad(below, (1, 0)).gather(1, block)
    # position in the block, valid for any rounding
    share = ((target - sum_before) / (below.gather(1, block) - sum_before)).clamp_(0, 1)
    within = _running_sums(p.index_select(0, row * blocks + block.squeeze(1)))  # [R·M, size]
    place = (
        (within <= share * within[:, -1:] * (1 - torch.finfo(p.dtype).eps))
        .sum(1)
        .clamp_(max=size - 1)
    )
    return (block.squeeze(1) * size + place).clamp_(max=n - 1).view_as(rows)


def _running_sums(x: Tensor) -> Tensor:
    """Running sums over the last dimension."""
    n = x.shape[1]
    return x @ x.new_ones(n, n).triu_()
