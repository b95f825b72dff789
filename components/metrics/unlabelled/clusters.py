"""Agreement of clusters with known classes."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.checks import NamedScores, check_shape
from components.contracts.predictive import top_class


def adjusted_rand(one: Tensor, other: Tensor) -> float:
    """Adjusted Rand index of two partitions of the same B rows, independent of labels.

    It is 1 for equal partitions and 0 for chance agreement.

    Source: Hubert and Arabie (1985), eq. (5).
    """
    check_shape("the clusters", one, *other.shape)
    table = torch.zeros(int(one.max()) + 1, int(other.max()) + 1, dtype=torch.float64)
    table.index_put_(
        (one.cpu(), other.cpu()), torch.ones(len(one), dtype=torch.float64), accumulate=True
    )

    def pairs(n: Tensor) -> Tensor:
        return (n * (n - 1) / 2).sum()

    both = pairs(table)
    rows = pairs(table.sum(1))
    columns = pairs(table.sum(0))
    every = pairs(table.sum())
    chance = rows * columns / every.clamp_min(1)
    most = 0.5 * (rows + columns)
    return 1.0 if most == chance else float((both - chance) / (most - chance))


def scores(probabilities: Tensor, classes: Tensor | None) -> NamedScores:
    """``clusters``, the number of clusters that are the most probable one of a row, and ``ari``
    relative to the classes if known; for rows with finite probabilities."""
    labels = top_class(probabilities.cpu())
    finite = labels >= 0
    labels = labels[finite]
    out: NamedScores = {"clusters": float(len(labels.unique()))}
    return out if classes is None else out | {"ari": adjusted_rand(labels, classes[finite])}
