"""Entropy of a density of which there are independent draws alone: by the distances of their nearest neighbours."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEIGHBOUR = 3  # k
EXACTLY = "donot_use_mm_for_euclid_dist"  # products of large numbers would lose small distances
ROWS = 1000  # of the n × n distances held at once


def entropy(x: Tensor, k: int = NEIGHBOUR) -> Tensor:
    """H(q) in nats [] of independent draws x [n, P] of a density q:

        ψ(n) − ψ(k) + log V_P + (P/n) Σ_i log ρ_i,   ρ_i the distance of x_i from the k-th nearest other draw,

    V_P = π^(P/2)/Γ(P/2 + 1) the volume of the unit ball.  Consistent; its bias falls with n and grows with P.  Infinite where
    k draws lie in the same place (a chain that refused a proposal): they have no density.  O(n² P) time.

    Raises ValueError when there are not more than k draws.

    Source: Kozachenko and Leonenko (1987); Kraskov, Stögbauer and Grassberger (2004), eq. (20), for any k."""
    n, P = x.shape
    if n <= k:
        raise ValueError(f"the {k}-th neighbours of {n} draws: there must be more of them")
    nearest = torch.cat(
        [torch.cdist(rows, x, compute_mode=EXACTLY).kthvalue(k + 1, dim=1).values for rows in x.split(ROWS)]
    )  # own is the first
    volume = 0.5 * P * math.log(math.pi) - math.lgamma(0.5 * P + 1)
    digamma = torch.digamma(x.new_tensor([n, k]))
    return digamma[0] - digamma[1] + volume + P * nearest.log().mean()
