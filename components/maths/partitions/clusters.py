"""Gaussian clusters of rows with their normal–Wishart integrated out.

They hold statistics and give the predictive weight of a row.

Plain loops over arrays, for ``crp_sweep`` to compile.
"""

from __future__ import annotations

import math

import numpy as np

from components.maths.compiled.loops import Array


def factor(
    k: int, V: Array, first: Array, second: Array, n: Array, beta: float, L: Array, logdet: Array
) -> None:
    """Lower L_k of V + Σ xxᵀ − (Σ x)(Σ x)ᵀ/(β + n) over cluster k, and its log determinant."""
    D = len(V)
    total = 0.0
    for i in range(D):
        for j in range(i + 1):
            value = V[i, j] + second[k, i, j] - first[k, i] * first[k, j] / (beta + n[k])
            for m in range(j):
                value -= L[k, i, m] * L[k, j, m]
            if i == j:
                L[k, i, i] = math.sqrt(value)
                total += 2.0 * math.log(L[k, i, i])
            else:
                L[k, i, j] = value / L[k, j, j]
    logdet[k] = total


def clear(
    k: int, V: Array, first: Array, second: Array, n: Array, beta: float, L: Array, logdet: Array
) -> None:
    """Cluster k without a row."""
    n[k] = 0
    for i in range(len(V)):
        first[k, i] = 0.0
        for j in range(i + 1):
            second[k, i, j] = 0.0
    factor(k, V, first, second, n, beta, L, logdet)


def copy_cluster(
    k: int, other: int, first: Array, second: Array, n: Array, L: Array, logdet: Array
) -> None:
    """Cluster ``other`` in the place of cluster k."""
    n[k] = n[other]
    logdet[k] = logdet[other]
    for i in range(first.shape[1]):
        first[k, i] = first[other, i]
        for j in range(i + 1):
            second[k, i, j] = second[other, i, j]
            L[k, i, j] = L[other, i, j]


def move_row(
    k: int,
    x: Array,
    b: int,
    sign: int,
    V: Array,
    first: Array,
    second: Array,
    n: Array,
    beta: float,
    L: Array,
    logdet: Array,
) -> None:
    """Cluster k with row b more (sign 1) or less (−1)."""
    n[k] += sign
    for i in range(x.shape[1]):
        first[k, i] += sign * x[b, i]
        for j in range(i + 1):
            second[k, i, j] += sign * x[b, i] * x[b, j]
    factor(k, V, first, second, n, beta, L, logdet)


def predictive(
    k: int,
    x: Array,
    b: int,
    first: Array,
    n: Array,
    beta: float,
    nu: float,
    L: Array,
    logdet: Array,
    constants: Array,
) -> float:
    """log p(row b | rows of cluster k), Student's t; ``constants`` are its normalisers by the
    number of rows."""
    D = x.shape[1]
    beta_k = beta + n[k]
    square = 0.0
    unit = np.empty(D)
    for i in range(D):
        value = x[b, i] - first[k, i] / beta_k
        for m in range(i):
            value -= L[k, i, m] * unit[m]
        unit[i] = value / L[k, i, i]
        square += unit[i] * unit[i]
    return (
        constants[n[k]]
        - 0.5 * logdet[k]
        - 0.5 * (nu + n[k] + 1) * math.log1p(beta_k / (beta_k + 1) * square)
    )
