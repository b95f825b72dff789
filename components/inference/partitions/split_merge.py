"""Compiled split-merge proposals of a Chinese restaurant process."""

from __future__ import annotations

import math
from typing import NamedTuple

from components.inference.partitions.clusters import (
    Clusters,
    clear,
    copy_cluster,
    log_marginal,
    move_row,
    predictive,
)
from components.maths.compiled.loops import Array


class SweepWorkspace(NamedTuple):
    """Work arrays of a sweep."""

    members: Array  # rows of a proposal except its first two [N]
    side: Array  # of two clusters, of each member [N]
    wanted: Array  # its current side [N]
    weights: Array  # of clusters [N + 4]


def relabel(z: Array, old: int, new: int) -> None:
    """Give rows of cluster ``old`` the label ``new``."""
    for b in range(len(z)):
        if z[b] == old:
            z[b] = new


def remove_cluster(k: int, z: Array, clusters: Clusters, K: int) -> int:
    """Replace cluster k by the last of K clusters.  Returns K − 1."""
    K -= 1
    if k != K:
        copy_cluster(k, K, clusters)
        relabel(z, K, k)
    clear(K, clusters)
    return K


def restricted_scan(
    count: int, work: SweepWorkspace, u: Array, forced: bool, A: int, clusters: Clusters
) -> float:
    """Gibbs scan of ``count`` members restricted to clusters A and A + 1.  Returns the log
    probability of its outcome.

    If forced, rows are assigned to their ``wanted`` sides.
    """
    side = work.side
    log_q = 0.0
    for m in range(count):
        b = work.members[m]
        move_row(A + side[m], b, -1, clusters)
        log_zero = math.log(clusters.n[A]) + predictive(A, b, clusters)
        log_second = math.log(clusters.n[A + 1]) + predictive(A + 1, b, clusters)
        log_first = -math.log1p(math.exp(min(log_second - log_zero, 700.0)))  # of side 0
        if forced:
            side[m] = work.wanted[m]
        else:
            side[m] = 0 if math.log(max(u[m], 1e-300)) < log_first else 1
        log_q += log_first if side[m] == 0 else log_first + log_second - log_zero
        move_row(A + side[m], b, 1, clusters)
    return log_q


def launch(
    i: int, j: int, z: Array, u: Array, A: int, clusters: Clusters, work: SweepWorkspace
) -> int:
    """Distribute the rows of the clusters of i and j over clusters A and A + 1 by coins u, with i
    in A and j in A + 1.  Returns the number of members, which exclude i and j."""
    clear(A, clusters)
    clear(A + 1, clusters)
    move_row(A, i, 1, clusters)
    move_row(A + 1, j, 1, clusters)
    count = 0
    for b in range(len(z)):
        if b != i and b != j and (z[b] == z[i] or z[b] == z[j]):
            work.members[count] = b
            work.wanted[count] = 0 if z[b] == z[i] else 1
            work.side[count] = 0 if u[b] < 0.5 else 1
            move_row(A + work.side[count], b, 1, clusters)
            count += 1
    return count


def split(j: int, count: int, z: Array, work: SweepWorkspace, clusters: Clusters, K: int) -> int:
    """Split the cluster of row j into the two reserved ones.  Returns K + 1."""
    A = len(clusters.n) - 2
    p = z[j]
    z[j] = K
    for m in range(count):
        if work.side[m] == 1:
            z[work.members[m]] = K
    copy_cluster(p, A, clusters)
    copy_cluster(K, A + 1, clusters)
    K += 1
    clear(K, clusters)
    return K


def split_or_merge(
    z: Array, u: Array, scans: int, clusters: Clusters, work: SweepWorkspace, K: int
) -> int:
    """Propose to split the shared cluster of two rows or to merge their clusters, and accept or
    reject.  Returns K, or −1 − K if accepted."""
    N = len(z)
    n = clusters.n
    A = len(n) - 2  # two reserved clusters
    i = min(int(u[0] * N), N - 1)
    j = min(int(u[1] * (N - 1)), N - 2)
    if j >= i:
        j += 1
    p = z[i]
    q = z[j]
    count = launch(i, j, z, u[3:], A, clusters, work)
    log_q = 0.0
    for scan in range(scans + 1):
        draws = u[3 + (scan + 1) * N : 3 + (scan + 2) * N]
        log_q = restricted_scan(count, work, draws, scan == scans and p != q, A, clusters)
    # log of P(split) L(split) over P(merged) L(merged)
    gain = (
        math.log(clusters.alpha)
        + math.lgamma(n[A])
        + math.lgamma(n[A + 1])
        - math.lgamma(n[A] + n[A + 1])
    )
    gain += log_marginal(A, clusters)
    gain += log_marginal(A + 1, clusters)
    if p == q:
        gain -= log_marginal(p, clusters)
        if math.log(max(u[2], 1e-300)) >= gain - log_q:
            return K
        return -1 - split(j, count, z, work, clusters, K)
    for b in range(N):  # the merged cluster
        if z[b] == q:
            move_row(A, b, 1, clusters)
    gain -= log_marginal(A, clusters)
    if math.log(max(u[2], 1e-300)) >= log_q - gain:
        return K
    relabel(z, q, p)
    copy_cluster(p, A, clusters)
    return -1 - remove_cluster(q, z, clusters, K)
