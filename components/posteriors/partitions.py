"""Partitions of rows: draws, losses, and the partition with the smallest expected loss.

expected = expected_variation(z)    # z [S, N], draws of a partition
best = least(expected, z)     # the Bayes action: best of the draws and greedy moves
cost = expected.cost(best)    # E[L(best, z)], the posterior expected loss
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from components.maths.compiled.loops import Array

# number of sampled partitions with the smallest expected loss from which greedy moves start
STARTS = 3
MAX_CANDIDATE_PARTITIONS = 500  # maximum number of distinct sampled partitions as candidates


def relabel_by_appearance(z: Array) -> Array:
    """Labels 0, 1, … in the order of appearance of clusters, for each z [S, N]."""
    out = np.empty_like(z)
    for s, row in enumerate(z):
        _, first, inverse = np.unique(row, return_index=True, return_inverse=True)
        rank = np.empty(len(first), z.dtype)
        rank[np.argsort(first)] = np.arange(len(first))
        out[s] = rank[inverse]
    return out


def together(z: Array) -> Array:
    """Share of draws with rows i and j in the same cluster [N, N], z [S, N]."""
    out = np.zeros((z.shape[1], z.shape[1]))
    for row in z:
        out += row[:, None] == row
    return out / len(z)


class ExpectedLoss(Protocol):
    """E[L(a, z)] over draws z, and greedy moves that decrease it."""

    def cost(self, a: Array) -> float: ...  # a [N]

    # move one row at a time to its cheapest cluster, until nothing changes
    def improve(self, a: Array) -> Array: ...


# draws z [S, N] of a partition -> expected L(a, z) for a partition a
PartitionLoss = Callable[[Array], ExpectedLoss]


def least(expected: ExpectedLoss, z: Array) -> Array:
    """The Bayes action [N]: the best partition among candidates.

    The candidates are the drawn partitions z [S, N] and the results of greedy moves from the best
    of them, from a single cluster, and from one cluster per row.
    """
    N = z.shape[1]
    distinct = np.unique(relabel_by_appearance(z), axis=0)
    if len(distinct) > MAX_CANDIDATE_PARTITIONS:
        distinct = distinct[np.linspace(0, len(distinct) - 1, MAX_CANDIDATE_PARTITIONS).astype(int)]
    order = np.argsort([expected.cost(a) for a in distinct], kind="stable")[:STARTS]
    starts = [*distinct[order], np.zeros(N, z.dtype), np.arange(N, dtype=z.dtype)]
    partitions = [expected.improve(a.copy()) for a in starts]
    best = min(partitions, key=expected.cost)
    return relabel_by_appearance(best[None])[0]


@dataclass(frozen=True)
class PairDisagreement:
    """Expected share of pairs on which a partition and z disagree about a common cluster."""

    p: Array  # share of draws with both rows in one cluster [N, N]

    def cost(self, a: Array) -> float:
        apart = np.abs((a[:, None] == a) - self.p)
        return float(apart[np.triu_indices(len(a), 1)].mean()) if len(a) > 1 else 0.0

    def improve(self, a: Array) -> Array:
        gain = 1 - 2 * self.p  # contribution of a pair in the same cluster
        still = False
        while not still:
            still = True
            for i in range(len(a)):
                current = a[i]
                a[i] = -1
                labels = np.unique(a[a >= 0])
                added = np.array([gain[i, a == k].sum() for k in labels])
                is_current = labels == current
                now = float(added[is_current][0]) if is_current.any() else 0.0
                best = float(added.min()) if len(labels) else 0.0
                if min(best, 0.0) < now - 1e-9:
                    a[i] = labels[added.argmin()] if best < 0 else a.max() + 1
                    still = False
                else:
                    a[i] = current
        return a


def expected_binder(z: Array) -> PairDisagreement:
    """L = share of the pairs of rows that are together in only one of the partitions, 1 − Rand
    index; z [S, N].

    Source: Binder (1978); Wade & Ghahramani (2018), section 2."""
    return PairDisagreement(together(z))


@dataclass(frozen=True)
class ExpectedVariation:
    """E[H(a | z) + H(z | a)] = N⁻¹ E[Σ_k a_k log a_k + Σ_l z_l log z_l − 2 Σ_kl n_kl log n_kl],
    n_kl the number of rows in both, in nats."""

    z: Array  # labels 0, 1, … [S, N]

    @property
    def _n_log_n(self) -> Array:
        n = np.arange(self.z.shape[1] + 2, dtype=float)
        return n * np.log(np.maximum(n, 1))

    def _overlap_counts(self, a: Array, n_labels: int) -> Array:
        """n_kl of every draw [S, room, L]."""
        (S, _), most = self.z.shape, int(self.z.max()) + 1
        place = (np.arange(S)[:, None] * n_labels + a) * most + self.z
        return np.bincount(place.ravel(), minlength=S * n_labels * most).reshape(S, n_labels, most)

    def cost(self, a: Array) -> float:
        n = self._overlap_counts(a, int(a.max()) + 1)
        f = self._n_log_n
        of_a = f[n[0].sum(1)].sum()
        of_z = f[n.sum(1)].sum(1).mean()
        of_both = f[n].sum((1, 2)).mean()
        return float(max(of_a + of_z - 2 * of_both, 0.0) / len(a))

    def improve(self, a: Array) -> Array:
        (S, N), f = self.z.shape, self._n_log_n
        step = np.diff(f)  # for a count increased by one
        n_labels = min(N, 2 * (int(a.max()) + 1) + 4)
        n = self._overlap_counts(a, n_labels)
        size = np.bincount(a, minlength=n_labels)
        every = np.arange(S)
        still = False
        while not still:
            still = True
            for i in range(N):
                current = a[i]
                label = self.z[:, i]
                n[every, current, label] -= 1
                size[current] -= 1
                # [capacity]; an empty cluster adds 0
                added = step[size] - 2 * step[n[every, :, label]].mean(0)
                k = int(added.argmin())
                if added[k] >= added[current] - 1e-9:
                    k = int(current)
                still = still and k == current
                a[i] = k
                n[every, k, label] += 1
                size[k] += 1
        return a


def expected_variation(z: Array) -> ExpectedVariation:
    """L = H(a | z) + H(z | a) in nats, the variation of information; z [S, N].

    Source: Meilă (2007), eq. (15); Wade & Ghahramani (2018), section 2."""
    return ExpectedVariation(relabel_by_appearance(z))
