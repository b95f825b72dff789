"""Collapsed Gibbs sweeps and split–merge moves over partitions of rows into Gaussian clusters,
compiled if possible."""

from __future__ import annotations

import math

import numpy as np

from components.inference.partitions.clusters import (
    Clusters,
    add_row,
    clear,
    factor,
    move_row,
    predictive,
)
from components.inference.partitions.split_merge import (
    SweepWorkspace,
    remove_cluster,
    split_or_merge,
)
from components.maths.compiled.loops import Array, compiled


def gibbs(z: Array, u: Array, clusters: Clusters, weights: Array, K: int) -> int:
    """Redraw every row given all others; cluster K is always empty.  Returns K."""
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


def count_rows(z: Array, clusters: Clusters) -> int:
    """Compute the statistics of the clusters of labels z.  Returns their number K."""
    K = z.max() + 1
    for k in range(K + 1):
        clear(k, clusters)
    for b in range(len(z)):
        add_row(z[b], b, 1, clusters)
    for k in range(K):
        factor(k, clusters)
    return int(K)


@compiled()
def _sweep(
    z: Array,
    u: Array,
    proposals: tuple[int, int],
    clusters: Clusters,
    work: SweepWorkspace,
    log_joint: Array,
    accepted: Array,
) -> None:
    """A sweep of every chain: split–merge proposals with the given number of scans, then every row.
    Returns log p(z, x) and the number of accepted proposals."""
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


def init_clusters(x: Array, alpha: float, V: Array, beta: float, nu: float) -> Clusters:
    """Rows x [N, D], centred at the prior mean, and the base measure (0, β, V, ν); memory for N
    clusters, the empty one, and two reserved ones."""
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
    return Clusters(
        np.ascontiguousarray(x),
        alpha,
        np.ascontiguousarray(V),
        beta,
        nu,
        constants,
        marginals,
        n=np.zeros(N + 4, np.int64),
        first=np.zeros((N + 4, D)),
        second=np.zeros((N + 4, D, D)),
        L=np.zeros((N + 4, D, D)),
        logdet=np.zeros(N + 4),
    )


def count_uniforms(N: int, moves: int, scans: int) -> int:
    """Number of random numbers for a sweep of one chain over N rows."""
    return N + moves * (3 + (scans + 2) * N)


def sweep(clusters: Clusters, z: Array, u: Array, moves: int, scans: int) -> tuple[Array, Array]:
    """Update the labels z [C, N] (0 … K − 1 each) in place with uniforms u [C, ·].  Returns log
    p(z, x) and the number of accepted moves [C] each.

    Source: Neal (2000), algorithm 3; Jain & Neal (2004), section 3."""
    log_joint, accepted = np.empty((2, len(z)))
    N = z.shape[1]
    moves = moves if N > 1 else 0  # split–merge needs two rows
    members, side, wanted = np.zeros((3, N), np.int64)
    work = SweepWorkspace(members, side, wanted, weights=np.zeros(N + 4))
    _sweep(z, u, (moves, scans), clusters, work, log_joint, accepted)
    return log_joint, accepted
