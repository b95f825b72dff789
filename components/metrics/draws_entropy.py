"""Nearest-neighbour estimate of the entropy of a density known only through draws."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEIGHBOUR = 3  # k
LOCAL = 50  # neighbours over which the number of repetitions is averaged
CDIST_MODE = "donot_use_mm_for_euclid_dist"  # products of large numbers would lose small distances
ROWS = 1000  # rows of the n × n distances held in memory together


def entropy(x: Tensor, k: int = NEIGHBOUR) -> Tensor:
    """H(q) in nats [] of draws x [n, P] of a density q, independent but for draws that repeat one
    another:

        ψ(d) − ψ(k) + log V_P + Σ_j (m_j/n) (P log ρ_j − log(m̄_j d/n)),

    with x_j the d distinct points, m_j how often each was drawn, ρ_j the distance of x_j from the
    k-th nearest other of them, m̄_j the mean of m over the ``LOCAL`` nearest others, V_P =
    π^(P/2)/Γ(P/2 + 1) the volume of the unit ball.  Where no draw repeats this is ψ(n) − ψ(k) + log
    V_P + (P/n) Σ_i log ρ_i.

    A chain that refuses proposals repeats its draws: its distinct points have the density q_d,
    which is not q, but q(x) = q_d(x) E[m | x] d/n, and m̄_j estimates E[m | x_j].  Consistent; its
    bias falls with n and grows with P. O(n² P) time.

    Raises ValueError when there are not more than k distinct draws.

    Source: Kozachenko and Leonenko (1987); Kraskov, Stögbauer and Grassberger (2004), eq. (20), for
    any k; the weights of draws that repeat are ours."""
    n, P = x.shape
    points, times = x.unique(dim=0, return_counts=True)
    repeats = len(points) < n
    points = points if repeats else x
    d = len(points)
    if d <= k:
        raise ValueError(f"the {k}-th neighbours of {d} distinct draws: there must be more of them")
    m = times.to(x)
    depth = min(max(k, LOCAL), d - 1) if repeats else k
    nearest = []
    local = []
    for rows in points.split(ROWS):
        distances = torch.cdist(rows, points, compute_mode=CDIST_MODE)
        if repeats:
            neighbours = distances.topk(depth + 1, largest=False)  # the first is the point itself
            nearest.append(neighbours.values[:, k])
            local.append(m[neighbours.indices[:, 1:]].mean(1))
        else:
            nearest.append(distances.kthvalue(k + 1, dim=1).values)
    volume = 0.5 * P * math.log(math.pi) - math.lgamma(0.5 * P + 1)
    digamma = torch.digamma(x.new_tensor([d, k]))
    logs = torch.cat(nearest).log()
    if not repeats:
        return digamma[0] - digamma[1] + volume + P * logs.mean()
    each = P * logs - (torch.cat(local) * (d / n)).log()
    return digamma[0] - digamma[1] + volume + (m / n) @ each
