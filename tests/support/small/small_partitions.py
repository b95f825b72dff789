"""All partitions of a few rows, and their literal probabilities in a Dirichlet process mixture of
Gaussians."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from support.runs.configured import double, generator, normal

from components.maths.exponential.normal_wishart import NormalWishart


def partitions(n: int, labels: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Every partition of n rows once, with clusters in order of appearance."""
    if len(labels) == n:
        yield labels
        return
    for k in range(max(labels, default=-1) + 2):
        yield from partitions(n, (*labels, k))


def log_marginal(x: np.ndarray, prior: NormalWishart) -> float:
    """log p(x) of the rows of one cluster, as a ratio of normalisers.

    Source: Murphy (2012), section 4.6.3."""
    from scipy.special import multigammaln

    n, D = x.shape
    m = prior.m.numpy()
    beta = float(prior.beta)
    V = prior.V.numpy()
    nu = float(prior.nu)
    mean = x.mean(0)
    scatter = (x - mean).T @ (x - mean)
    V_n = V + scatter + beta * n / (beta + n) * np.outer(mean - m, mean - m)
    gammas = multigammaln((nu + n) / 2, D) - multigammaln(nu / 2, D)
    dets = nu / 2 * np.linalg.slogdet(V)[1] - (nu + n) / 2 * np.linalg.slogdet(V_n)[1]
    return float(
        -n * D / 2 * math.log(math.pi) + gammas + dets + D / 2 * math.log(beta / (beta + n))
    )


def log_joint(z: tuple[int, ...], x: np.ndarray, alpha: float, prior: NormalWishart) -> float:
    """log p(z, x): rows enter one by one, into a cluster of n_k with n_k/(α + b), into a new one
    with α/(α + b)."""
    total = 0.0
    sizes: dict[int, int] = {}
    for b, k in enumerate(z):
        total += math.log(sizes.get(k, alpha) / (alpha + b))
        sizes[k] = sizes.get(k, 0) + 1
    return total + sum(log_marginal(x[np.array(z) == k], prior) for k in sizes)


def small_rows(n: int = 6) -> tuple[torch.Tensor, NormalWishart]:
    """Rows of two values, half of them around another centre, and a base measure."""
    g = generator(3)
    x = 0.5 * normal(g, n, 2)
    x[n // 2 :] += 1.2
    V = double([[0.7, 0.1], [0.1, 0.5]])
    return x, NormalWishart(x.mean(0), x.new_tensor(0.3), V, x.new_tensor(4.0))
