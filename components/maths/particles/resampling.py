"""Resampling of weighted particles, for R particle systems in parallel.

The cost is O(N), except for the search of multinomial points.  A scheme draws the number of
offspring of each particle, with E[count_n] = N w_n; ancestors are particles repeated by count.
Weights are [R, N], need not be normalised, and are summed in float64, because in float32 the last
of 10⁵ weights can be lost.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.maths.particles.draws import uniform
from components.maths.particles.kernels import count_between, cumulative_weights, kernels_of

Scheme = Literal["multinomial", "residual", "stratified", "systematic", "ssp"]


def effective_sample_size(weights: Tensor) -> Tensor:
    """ESS = 1 / Σ_n w_n² for normalised weights [R, N] -> [R], between 1 and N."""
    return 1 / weights.square().sum(1)


def ancestors(scheme: Scheme, weights: Tensor, generator: torch.Generator) -> Tensor:
    """Ancestors drawn by a scheme, sorted, as row numbers of the particles reshaped to [R·N, …]:
    [R·N]."""
    return _rows(offspring(scheme, weights, generator))


def _rows(counts: Tensor) -> Tensor:
    """Row numbers repeated by their counts [R, N]; [R·N]."""
    rows = torch.arange(counts.numel(), device=counts.device)
    return kernels_of(counts).repeat_values(rows.view_as(counts), counts).flatten()


def resample_particles(x: Tensor, counts: Tensor) -> Tensor:
    """Particles [R, N, dx], each repeated by its number of offspring, in order; [R, N, dx]."""
    if x.shape[2] == 1:
        return kernels_of(x).repeat_values(x[..., 0], counts).unsqueeze(2)
    return take_rows(x, _rows(counts))


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Select particles [R, N, dx] by row numbers [R·N], each within its own system; [R, N, dx] with
    the same memory layout."""
    return kernels_of(x).take_rows(x, rows)


def offspring(scheme: Scheme, weights: Tensor, generator: torch.Generator) -> Tensor:
    """Number of offspring of each particle, N in total per system; [R, N] long."""
    r, n = weights.shape
    match scheme:
        case "systematic":
            return systematic_counts(weights, uniform((r,), generator, weights))
        case "stratified":
            return stratified_counts(weights, uniform((r, n), generator, weights))
        case "multinomial":
            points = torch.full((r,), n, device=weights.device)
            return multinomial_counts(weights, points, uniform((r, n + 1), generator, weights))
        case "residual":
            return residual_counts(weights, uniform((r, n + 1), generator, weights))
        case "ssp":
            return ssp_counts(weights, uniform((r, n), generator, weights))


def systematic_counts(weights: Tensor, u: Tensor) -> Tensor:
    """Offspring of each particle: number of the points (u + i)/N, i = 0 … N−1, in its interval of
    the cumulative weights.

    Every count is ⌊N w_n⌋ or ⌈N w_n⌉.  u [R] in [0, 1).

    Source: Kitagawa (1996), appendix; Carpenter, Clifford & Fearnhead (1999)."""
    weights = weights.detach().double()
    return kernels_of(weights).systematic_counts(weights, u.double())


def stratified_counts(weights: Tensor, u: Tensor) -> Tensor:
    """Stratified resampling counts for u [R, N] in [0, 1).

    They are the numbers of points (u_i + i)/N, i = 0 … N−1, in each interval of the cumulative
    weights.  Below the edge N W are the ⌊N W⌋ points of the previous strata, and the point of its
    own stratum if u is less than the remainder, so that no search is required.

    Source: Kitagawa (1996), appendix; Douc, Cappé & Moulines (2005), section 2.3.
    """
    n = weights.shape[1]
    edges = cumulative_weights(weights).mul_(n)
    floors = edges.floor()
    stratum = floors.long()
    # the last edge has neither its own stratum nor a remainder
    first = u.gather(1, stratum.clamp(max=n - 1))
    has_point = first < edges - floors
    return count_between(stratum + has_point)


def multinomial_counts(weights: Tensor, points: Tensor, u: Tensor) -> Tensor:
    """Offspring from ``points`` [R] ≤ N independent draws of particles; u [R, N + 1] in [0, 1).

    With S_i the sum of i standard exponentials, S_1/S_{k+1} … S_k/S_{k+1} are k sorted uniforms, in
    which the edges of the cumulative weights are searched (both are sorted; measured 10 ns per
    particle, while a histogram with counts inside its cells needs three more passes).

    Source: Devroye (1986), section V.3.1; Gordon, Salmond & Smith (1993)."""
    sums = torch.log1p(-u).neg_().cumsum_(1)
    sorted_uniforms = sums / sums.gather(1, points.unsqueeze(1))  # 1 from position k on
    total = weights.double().sum(1, keepdim=True)
    # where the sum is 0 there are no points to draw
    edges = torch.where(total > 0, cumulative_weights(weights), 0.0)
    return count_between(kernels_of(edges).count_points_below(sorted_uniforms, edges))


def residual_counts(weights: Tensor, u: Tensor) -> Tensor:
    """⌊N w_n⌋ offspring each, and the rest by multinomial draws from the remainders of N w_n; u [R,
    N + 1] in [0, 1).

    Source: Liu & Chen (1998), section 3.2."""
    n = weights.shape[1]
    expected = weights.double() * (n / weights.double().sum(1, keepdim=True))
    floors = expected.floor()
    counts = floors.long()
    return counts + multinomial_counts(expected - floors, n - counts.sum(1), u)


def ssp_counts(weights: Tensor, u: Tensor) -> Tensor:
    """Srinivasan sampling process: ⌊N w_n⌋ or ⌈N w_n⌉ offspring each, for u [R, N] in [0, 1).

    The counts are negatively associated.  Two particles with remainders p and q of N w are
    compared.  If p + q ≤ 1, one gets no more offspring and the other, which is the first with
    probability p/(p + q), continues with p + q; otherwise one gets one more and the other continues
    with p + q − 1, which is the second with probability (1 − q)/(2 − p − q).  Comparisons form a
    tournament with log₂ N rounds for all systems in parallel, instead of a sequence of particles;
    negative association requires an order fixed beforehand, but not a specific one.

    Source: Gerber, Chopin & Whiteley (2019), algorithm 2 (SSP); Srinivasan (2001).
    """
    r, n = weights.shape
    expected = weights.double() * (n / weights.double().sum(1, keepdim=True))
    floors = expected.floor()
    more = torch.zeros_like(expected)  # 1: one more offspring
    fractions = expected - floors
    indices = torch.arange(n, device=weights.device).expand(r, n)
    n_used = 0
    while indices.shape[1] > 1:
        pairs = indices.shape[1] // 2
        p = fractions[:, : 2 * pairs : 2]
        q = fractions[:, 1 : 2 * pairs : 2]
        first = indices[:, : 2 * pairs : 2]
        second = indices[:, 1 : 2 * pairs : 2]
        both = p + q
        chance = u[:, n_used : n_used + pairs]
        n_used += pairs
        up = both > 1
        # True if the first continues: it keeps p + q if that is at most 1; otherwise the second
        # gets the offspring
        first_on = torch.where(up, chance * (2 - both) < 1 - p, chance * both < p)
        settled = torch.where(first_on, second, first)
        more.scatter_(1, settled, up.to(more))
        fractions = torch.cat([torch.where(up, both - 1, both), fractions[:, 2 * pairs :]], 1)
        indices = torch.cat([torch.where(first_on, first, second), indices[:, 2 * pairs :]], 1)
    counts = (floors + more).long()
    # the last gets the remainder, 0 or 1 up to rounding
    return counts.scatter_add_(1, indices, n - counts.sum(1, keepdim=True))
