"""Collapsed Gibbs sweeps and split–merge moves over partitions of rows into Gaussian clusters,
compiled where they can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from components.maths.compiled.loops import Array, compile_loop
from components.maths.partitions.clusters import clear, copy_cluster, factor, move_row, predictive


def gibbs(
    z: Array,
    x: Array,
    u: Array,
    alpha: float,
    V: Array,
    first: Array,
    second: Array,
    n: Array,
    beta: float,
    nu: float,
    L: Array,
    logdet: Array,
    constants: Array,
    weights: Array,
    K: int,
) -> int:
    """Every row drawn anew given all others; cluster K is always the empty one.  Returns K."""
    for b in range(len(x)):
        k = z[b]
        move_row(k, x, b, -1, V, first, second, n, beta, L, logdet)
        if n[k] == 0:  # the last cluster takes its place
            K -= 1
            if k != K:
                copy_cluster(k, K, first, second, n, L, logdet)
                for other in range(len(x)):
                    if z[other] == K:
                        z[other] = k
            clear(K, V, first, second, n, beta, L, logdet)
        top = -np.inf
        for c in range(K + 1):
            prior = alpha if c == K else float(n[c])
            weights[c] = math.log(prior) + predictive(
                c, x, b, first, n, beta, nu, L, logdet, constants
            )
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
        move_row(cluster, x, b, 1, V, first, second, n, beta, L, logdet)
        if cluster == K:
            K += 1
            clear(K, V, first, second, n, beta, L, logdet)
    return K


def restricted_scan(
    members: Array,
    side: Array,
    count: int,
    x: Array,
    u: Array,
    wanted: Array,
    forced: bool,
    A: int,
    V: Array,
    first: Array,
    second: Array,
    n: Array,
    beta: float,
    nu: float,
    L: Array,
    logdet: Array,
    constants: Array,
) -> float:
    """Gibbs scan of rows restricted to clusters A and A + 1; log probability of its outcome.

    If forced, rows go to their ``wanted`` sides.
    """
    log_q = 0.0
    for m in range(count):
        b = members[m]
        move_row(A + side[m], x, b, -1, V, first, second, n, beta, L, logdet)
        zero = math.log(n[A]) + predictive(A, x, b, first, n, beta, nu, L, logdet, constants)
        one = math.log(n[A + 1]) + predictive(A + 1, x, b, first, n, beta, nu, L, logdet, constants)
        log_first = -math.log1p(math.exp(min(one - zero, 700.0)))  # of side 0
        if forced:
            side[m] = wanted[m]
        else:
            side[m] = 0 if math.log(max(u[m], 1e-300)) < log_first else 1
        log_q += log_first if side[m] == 0 else log_first + one - zero
        move_row(A + side[m], x, b, 1, V, first, second, n, beta, L, logdet)
    return log_q


def split_or_merge(
    z: Array,
    x: Array,
    u: Array,
    scans: int,
    alpha: float,
    V: Array,
    first: Array,
    second: Array,
    n: Array,
    beta: float,
    nu: float,
    L: Array,
    logdet: Array,
    constants: Array,
    marginals: Array,
    members: Array,
    side: Array,
    wanted: Array,
    K: int,
) -> int:
    """One proposal to split the cluster of two rows, or to merge theirs, accepted or not.  Returns
    K, −1 − K where accepted."""
    N = len(x)
    A = len(n) - 2  # two clusters aside
    i = min(int(u[0] * N), N - 1)
    j = min(int(u[1] * (N - 1)), N - 2)
    if j >= i:
        j += 1
    p = z[i]
    q = z[j]
    count = 0
    clear(A, V, first, second, n, beta, L, logdet)
    clear(A + 1, V, first, second, n, beta, L, logdet)
    move_row(A, x, i, 1, V, first, second, n, beta, L, logdet)
    move_row(A + 1, x, j, 1, V, first, second, n, beta, L, logdet)
    for b in range(N):
        if b != i and b != j and (z[b] == p or z[b] == q):
            members[count] = b
            wanted[count] = 0 if z[b] == p else 1
            side[count] = 0 if u[3 + b] < 0.5 else 1
            move_row(A + side[count], x, b, 1, V, first, second, n, beta, L, logdet)
            count += 1
    for scan in range(scans):
        draws = u[3 + (scan + 1) * N : 3 + (scan + 2) * N]
        restricted_scan(
            members,
            side,
            count,
            x,
            draws,
            wanted,
            False,
            A,
            V,
            first,
            second,
            n,
            beta,
            nu,
            L,
            logdet,
            constants,
        )
    draws = u[3 + (scans + 1) * N : 3 + (scans + 2) * N]
    log_q = restricted_scan(
        members,
        side,
        count,
        x,
        draws,
        wanted,
        p != q,
        A,
        V,
        first,
        second,
        n,
        beta,
        nu,
        L,
        logdet,
        constants,
    )
    # log of P(split) L(split) over P(merged) L(merged)
    gain = (
        math.log(alpha) + math.lgamma(n[A]) + math.lgamma(n[A + 1]) - math.lgamma(n[A] + n[A + 1])
    )
    for c in (A, A + 1):
        gain += marginals[n[c]] - 0.5 * (nu + n[c]) * logdet[c]
    if p == q:
        gain -= marginals[n[p]] - 0.5 * (nu + n[p]) * logdet[p]
        if math.log(max(u[2], 1e-300)) >= gain - log_q:
            return K
        z[j] = K
        for m in range(count):
            if side[m] == 1:
                z[members[m]] = K
        copy_cluster(p, A, first, second, n, L, logdet)
        copy_cluster(K, A + 1, first, second, n, L, logdet)
        K += 1
        clear(K, V, first, second, n, beta, L, logdet)
        return -1 - K
    for b in range(N):  # the merged cluster
        if z[b] == q:
            move_row(A, x, b, 1, V, first, second, n, beta, L, logdet)
    gain -= marginals[n[A]] - 0.5 * (nu + n[A]) * logdet[A]
    if math.log(max(u[2], 1e-300)) >= log_q - gain:
        return K
    for b in range(N):
        if z[b] == q:
            z[b] = p
    copy_cluster(p, A, first, second, n, L, logdet)
    K -= 1
    if q != K:
        copy_cluster(q, K, first, second, n, L, logdet)
        for b in range(N):
            if z[b] == K:
                z[b] = q
    clear(K, V, first, second, n, beta, L, logdet)
    return -1 - K


def _sweep(
    z: Array,
    x: Array,
    u: Array,
    moves: int,
    scans: int,
    alpha: float,
    V: Array,
    beta: float,
    nu: float,
    constants: Array,
    marginals: Array,
    log_joint: Array,
    accepted: Array,
) -> None:
    """A sweep of every chain: ``moves`` proposals to split or merge, then every row; log p(z, x)
    and how many were accepted."""
    C, N = z.shape
    D = x.shape[1]
    n = np.zeros(N + 4, np.int64)
    logdet = np.zeros(N + 4)
    first = np.zeros((N + 4, D))
    second = np.zeros((N + 4, D, D))
    L = np.zeros((N + 4, D, D))
    weights = np.zeros(N + 4)
    members = np.zeros(N, np.int64)
    side = np.zeros(N, np.int64)
    targets = np.zeros(N, np.int64)
    for c in range(C):
        K = 0
        for b in range(N):
            K = max(K, z[c, b] + 1)
        for k in range(K + 1):
            clear(k, V, first, second, n, beta, L, logdet)
        for b in range(N):
            k = z[c, b]
            n[k] += 1
            for i in range(D):
                first[k, i] += x[b, i]
                for j in range(i + 1):
                    second[k, i, j] += x[b, i] * x[b, j]
        for k in range(K):
            factor(k, V, first, second, n, beta, L, logdet)
        accepted[c] = 0.0
        offset = N
        for _ in range(moves):
            uniforms = u[c, offset : offset + 3 + (scans + 2) * N]
            K = split_or_merge(
                z[c],
                x,
                uniforms,
                scans,
                alpha,
                V,
                first,
                second,
                n,
                beta,
                nu,
                L,
                logdet,
                constants,
                marginals,
                members,
                side,
                targets,
                K,
            )
            if K < 0:
                K = -1 - K
                accepted[c] += 1.0
            offset += 3 + (scans + 2) * N
        K = gibbs(
            z[c], x, u[c], alpha, V, first, second, n, beta, nu, L, logdet, constants, weights, K
        )
        log_joint[c] = K * math.log(alpha) + math.lgamma(alpha) - math.lgamma(alpha + N)
        for k in range(K):
            log_joint[c] += math.lgamma(n[k]) + marginals[n[k]] - 0.5 * (nu + n[k]) * logdet[k]


@cache
def _loop() -> Callable[..., None]:
    parts: list[Callable[..., Any]] = [
        factor,
        clear,
        copy_cluster,
        move_row,
        predictive,
        gibbs,
        restricted_scan,
        split_or_merge,
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
        moves = moves if len(self.x) > 1 else 0  # two rows are needed
        _loop()(
            z,
            self.x,
            u,
            moves,
            scans,
            self.alpha,
            self.V,
            self.beta,
            self.nu,
            self.constants,
            self.marginals,
            log_joint,
            accepted,
        )
        return log_joint, accepted
