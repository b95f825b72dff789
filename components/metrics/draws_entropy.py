"""Nearest-neighbour estimate of the entropy of a density from draws."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEIGHBOUR = 3  # k
LOCAL = 50  # number of neighbours over which repetitions are averaged
# products of large numbers would lose precision of small distances
CDIST_MODE = "donot_use_mm_for_euclid_dist"
ROWS = 1000  # number of rows of the n × n distances in memory


def entropy(x: Tensor, k: int = NEIGHBOUR) -> Tensor:
    """H(q) in nats [] from draws x [n, P] of a density q, independent except for repeated draws:

        ψ(d) − ψ(k) + log V_P + Σ_j (m_j/n) (P log ρ_j − log(m̄_j d/n)),

    with x_j the d distinct points, m_j the number of repetitions of x_j, ρ_j the distance of x_j
    from its k-th nearest neighbour among them, m̄_j the mean of m over the ``LOCAL`` nearest
    neighbours, V_P = π^(P/2)/Γ(P/2 + 1) the volume of the unit ball.  Without repetitions this is
    ψ(n) − ψ(k) + log V_P + (P/n) Σ_i log ρ_i.

    A chain that rejects proposals repeats its draws: its distinct points have a density q_d other
    than q, but q(x) = q_d(x) E[m | x] d/n, and m̄_j estimates E[m | x_j].  The estimate is
    consistent; its bias decreases with n and grows with P.  O(n² P) time.

    Raises ValueError for k or fewer distinct draws.

    Source: Kozachenko and Leonenko (1987); Kraskov, Stögbauer and Grassberger (2004), eq. (20), for
    any k; the weights of repeated draws are an extension."""
    n, P = x.shape
    points, times = x.unique(dim=0, return_counts=True)
    repeats = len(points) < n
    points = points if repeats else x
    d = len(points)
    if d <= k:
        raise ValueError(
            f"the {k}-th neighbours of {d} distinct draws do not exist; use more draws"
        )
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
