"""Collapsed Gibbs sweeps and split–merge moves over partitions of rows into Gaussian clusters,
compiled where they can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from components.inference.partitions.clusters import (
    Clusters,
    add_row,
    clear,
    copy_cluster,
    factor,
    log_marginal,
    move_row,
    predictive,
)
from components.maths.compiled.loops import Array, compile_loop


class SweepWorkspace(NamedTuple):
    """Arrays that a sweep writes on."""

    members: Array  # rows of a proposal but its first two [N]
    side: Array  # of two clusters, of each member [N]
    wanted: Array  # its present side [N]
    weights: Array  # of clusters [N + 4]


def relabel(z: Array, old: int, new: int) -> None:
    """Give rows of cluster ``old`` the label ``new``."""
    for b in range(len(z)):
        if z[b] == old:
            z[b] = new


def remove_cluster(k: int, z: Array, clusters: Clusters, K: int) -> int:
    """Put the last of K clusters in the place of cluster k.  Returns K − 1."""
    K -= 1
    if k != K:
        copy_cluster(k, K, clusters)
        relabel(z, K, k)
    clear(K, clusters)
    return K


def gibbs(z: Array, u: Array, clusters: Clusters, weights: Array, K: int) -> int:
    """Every row drawn anew given all others; cluster K is always the empty one.  Returns K."""
    n = clusters.n
    for b in range(len(z)):
        k = z[b]
        move_row(k, b, -1, clusters)
        if n[k] == 0:
            K = remove_cluster(k, z, clusters, K)
        top = -np.inf
        for c in range(K + 1):
            prior = clusters.alpha if c == K else float(n[c])
            weights[c] = math.log(prior) + predictive(c, b, clusters)
            top = max(top, weights[c])
        total = 0.0
        for c in range(K + 1):
            weights[c] = math.exp(weights[c] - top)
            total += weights[c]
        remaining = u[b] * total
        cluster = 0
        while cluster < K and remaining >= weights[cluster]:
            remaining -= weights[cluster]
            cluster += 1
        z[b] = cluster
        move_row(cluster, b, 1, clusters)
        if cluster == K:
            K += 1
            clear(K, clusters)
    return K


def restricted_scan(
    count: int, work: SweepWorkspace, u: Array, forced: bool, A: int, clusters: Clusters
) -> float:
    """Gibbs scan of ``count`` members restricted to clusters A and A + 1; log probability of its
    outcome.

    If forced, rows go to their ``wanted`` sides.
    """
    side = work.side
    log_q = 0.0
    for m in range(count):
        b = work.members[m]
        move_row(A + side[m], b, -1, clusters)
        zero = math.log(clusters.n[A]) + predictive(A, b, clusters)
        one = math.log(clusters.n[A + 1]) + predictive(A + 1, b, clusters)
        log_first = -math.log1p(math.exp(min(one - zero, 700.0)))  # of side 0
        if forced:
            side[m] = work.wanted[m]
        else:
            side[m] = 0 if math.log(max(u[m], 1e-300)) < log_first else 1
        log_q += log_first if side[m] == 0 else log_first + one - zero
        move_row(A + side[m], b, 1, clusters)
    return log_q


def launch(
    i: int, j: int, z: Array, u: Array, A: int, clusters: Clusters, work: SweepWorkspace
) -> int:
    """Put i and the rows of its cluster, j and the rows of its own, into clusters A and A + 1 by
    coins u; i in A, j in A + 1.  Returns the number of members, the rows but i and j."""
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
    """Split the cluster of row j into the two set aside.  Returns K + 1."""
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
    """One proposal to split the cluster of two rows, or to merge theirs, accepted or not.  Returns
    K, −1 − K where accepted."""
    N = len(z)
    n = clusters.n
    A = len(n) - 2  # two clusters aside
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


def count_rows(z: Array, clusters: Clusters) -> int:
    """Statistics of the clusters of labels z.  Returns their number K."""
    K = z.max() + 1
    for k in range(K + 1):
        clear(k, clusters)
    for b in range(len(z)):
        add_row(z[b], b, 1, clusters)
    for k in range(K):
        factor(k, clusters)
    return int(K)


def _sweep(
    z: Array,
    u: Array,
    proposals: tuple[int, int],
    clusters: Clusters,
    work: SweepWorkspace,
    log_joint: Array,
    accepted: Array,
) -> None:
    """A sweep of every chain: proposals to split or merge, of so many scans each, then every row;
    log p(z, x) and how many were accepted."""
    C, N = z.shape
    moves, scans = proposals
    alpha = clusters.alpha
    for c in range(C):
        K = count_rows(z[c], clusters)
        accepted[c] = 0.0
        offset = N
        for _ in range(moves):
            uniforms = u[c, offset : offset + 3 + (scans + 2) * N]
            K = split_or_merge(z[c], uniforms, scans, clusters, work, K)
            if K < 0:
                K = -1 - K
                accepted[c] += 1.0
            offset += 3 + (scans + 2) * N
        K = gibbs(z[c], u[c], clusters, work.weights, K)
        log_joint[c] = K * math.log(alpha) + math.lgamma(alpha) - math.lgamma(alpha + N)
        for k in range(K):
            n = clusters.n[k]
            spread = 0.5 * (clusters.nu + n) * clusters.logdet[k]
            log_joint[c] += math.lgamma(n) + clusters.marginals[n] - spread


@cache
def _loop() -> Callable[..., None]:
    parts: list[Callable[..., Any]] = [
        factor,
        clear,
        copy_cluster,
        add_row,
        move_row,
        predictive,
        log_marginal,
        relabel,
        remove_cluster,
        gibbs,
        restricted_scan,
        launch,
        split,
        split_or_merge,
        count_rows,
    ]
    return compile_loop(_sweep, parts)


@dataclass(frozen=True)
class CrpSweepData:
    """Data for sweeps: rows x, centred at the prior mean, and the base normal–Wishart.

    The base measure is (0, β, V, ν).
    """

    x: Array  # [N, D]
    alpha: float
    V: Array  # [D, D]
    beta: float
    nu: float
    constants: Array  # normalisers of predictive densities, by the rows a cluster has [N + 1]
    marginals: Array  # and of the density of all its rows [N + 1]

    @classmethod
    def of(cls, x: Array, alpha: float, V: Array, beta: float, nu: float) -> CrpSweepData:
        from scipy import special

        N, D = x.shape
        n = np.arange(N + 1)
        ratio = np.log((beta + n) / (beta + n + 1))
        constants = special.gammaln(0.5 * (nu + n + 1)) - special.gammaln(0.5 * (nu + n + 1 - D))
        constants = constants - 0.5 * D * math.log(math.pi) + 0.5 * D * ratio
        halves = 0.5 * (nu + n[:, None] - np.arange(D))  # [N + 1, D]
        gammas = special.gammaln(halves).sum(1) - special.gammaln(halves[0]).sum()
        logdet = float(np.linalg.slogdet(V)[1])
        marginals = (
            gammas
            - 0.5 * n * D * math.log(math.pi)
            + 0.5 * nu * logdet
            + 0.5 * D * np.log(beta / (beta + n))
        )
        return cls(
            np.ascontiguousarray(x), alpha, np.ascontiguousarray(V), beta, nu, constants, marginals
        )

    def uniforms(self, moves: int, scans: int) -> int:
        """Random numbers that a sweep of one chain takes."""
        N = len(self.x)
        return N + moves * (3 + (scans + 2) * N)

    def sweep(self, z: Array, u: Array, moves: int, scans: int) -> tuple[Array, Array]:
        """Moves the labels z [C, N] (0 … K − 1 each) in place, uniforms u [C, ·]; log p(z, x) and
        moves accepted [C] each.

        Source: Neal (2000), algorithm 3; Jain & Neal (2004), section 3."""
        log_joint = np.empty(len(z))
        accepted = np.empty(len(z))
        N = len(self.x)
        moves = moves if N > 1 else 0  # two rows are needed
        members, side, wanted = np.zeros((3, N), np.int64)
        work = SweepWorkspace(members, side, wanted, weights=np.zeros(N + 4))
        _loop()(z, u, (moves, scans), self._clusters(), work, log_joint, accepted)
        return log_joint, accepted

    def _clusters(self) -> Clusters:
        """Room for a cluster of each row, the empty one, and two set aside."""
        N, D = self.x.shape
        return Clusters(
            **vars(self),
            n=np.zeros(N + 4, np.int64),
            first=np.zeros((N + 4, D)),
            second=np.zeros((N + 4, D, D)),
            L=np.zeros((N + 4, D, D)),
            logdet=np.zeros(N + 4),
        )
