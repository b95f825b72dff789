"""Gaussian clusters of rows with their normal–Wishart integrated out.

Statistics of clusters, and predictive weights of rows.

Plain loops over arrays, compiled by ``crp_sweep``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from components.maths.compiled.loops import Array


class Clusters(NamedTuple):
    """Rows, the base normal–Wishart, and the statistics of K clusters of rows."""

    x: Array  # rows, centred at the prior mean [N, D]
    alpha: float
    V: Array  # [D, D]
    beta: float
    nu: float
    # normalisers of predictive densities, by the number of rows in a cluster [N + 1]
    constants: Array
    marginals: Array  # normalisers of the density of all its rows [N + 1]
    n: Array  # number of rows of each cluster [K]
    first: Array  # their sum [K, D]
    second: Array  # and the sum of xxᵀ, lower half [K, D, D]
    L: Array  # Cholesky factors, see ``factor`` [K, D, D]
    logdet: Array  # [K]


def factor(k: int, clusters: Clusters) -> None:
    """Lower L_k of V + Σ xxᵀ − (Σ x)(Σ x)ᵀ/(β + n) over cluster k, and its log determinant."""
    V = clusters.V
    L = clusters.L
    first = clusters.first
    second = clusters.second
    beta_k = clusters.beta + clusters.n[k]
    total = 0.0
    for i in range(len(V)):
        for j in range(i + 1):
            value = V[i, j] + second[k, i, j] - first[k, i] * first[k, j] / beta_k
            for m in range(j):
                value -= L[k, i, m] * L[k, j, m]
            if i == j:
                L[k, i, i] = math.sqrt(value)
                total += 2.0 * math.log(L[k, i, i])
            else:
                L[k, i, j] = value / L[k, j, j]
    clusters.logdet[k] = total


def clear(k: int, clusters: Clusters) -> None:
    """Remove all rows from cluster k."""
    clusters.n[k] = 0
    for i in range(len(clusters.V)):
        clusters.first[k, i] = 0.0
        for j in range(i + 1):
            clusters.second[k, i, j] = 0.0
    factor(k, clusters)


def copy_cluster(k: int, other: int, clusters: Clusters) -> None:
    """Copy cluster ``other`` to cluster k."""
    clusters.n[k] = clusters.n[other]
    clusters.logdet[k] = clusters.logdet[other]
    for i in range(len(clusters.V)):
        clusters.first[k, i] = clusters.first[other, i]
        for j in range(i + 1):
            clusters.second[k, i, j] = clusters.second[other, i, j]
            clusters.L[k, i, j] = clusters.L[other, i, j]


def add_row(k: int, b: int, sign: int, clusters: Clusters) -> None:
    """Add row b to the statistics of cluster k (sign 1), or remove it (−1)."""
    x = clusters.x
    clusters.n[k] += sign
    for i in range(x.shape[1]):
        clusters.first[k, i] += sign * x[b, i]
        for j in range(i + 1):
            clusters.second[k, i, j] += sign * x[b, i] * x[b, j]


def move_row(k: int, b: int, sign: int, clusters: Clusters) -> None:
    """Add row b to cluster k (sign 1) or remove it (−1), and update its factor."""
    add_row(k, b, sign, clusters)
    factor(k, clusters)


def predictive(k: int, b: int, clusters: Clusters) -> float:
    """log p(row b | rows of cluster k), Student's t."""
    x = clusters.x
    L = clusters.L
    D = x.shape[1]
    n = clusters.n[k]
    beta_k = clusters.beta + n
    square = 0.0
    unit = np.empty(D)
    for i in range(D):
        value = x[b, i] - clusters.first[k, i] / beta_k
        for m in range(i):
            value -= L[k, i, m] * unit[m]
        unit[i] = value / L[k, i, i]
        square += unit[i] * unit[i]
    return float(
        clusters.constants[n]
        - 0.5 * clusters.logdet[k]
        - 0.5 * (clusters.nu + n + 1) * math.log1p(beta_k / (beta_k + 1) * square)
    )


def log_marginal(k: int, clusters: Clusters) -> float:
    """log p(rows of cluster k), without the terms of V."""
    n = clusters.n[k]
    return float(clusters.marginals[n] - 0.5 * (clusters.nu + n) * clusters.logdet[k])
