"""Compiled order statistics of many samples."""

from __future__ import annotations

import math

import numpy as np

from components.maths.compiled.loops import Array, compiled

# number of bins: many enough that few values share a bin with a rank, few enough that counts stay
# in cache
BINS = 128
SAMPLE = 64  # number of values of a row that determine its bins


def _select(v: Array, low: int, high: int, k: int) -> None:
    """Partially sort v[low … high] in place, so that v[k] has its sorted position, with no greater
    value before and no smaller one after it."""
    while low < high:
        pivot = v[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while v[i] < pivot:
                i += 1
            while pivot < v[j]:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return


def _bins(x: Array, m: int, places: Array) -> None:
    """The bin of every value of a row; bins cover three standard deviations on either side of the
    mean, both estimated from a sample."""
    n = x.shape[1]
    last = BINS - 1.0
    stride = max(1, n // SAMPLE)
    total = 0.0
    squares = 0.0
    n_sampled = 0
    for i in range(0, n, stride):
        total += x[m, i]
        n_sampled += 1
    centre = total / n_sampled
    for i in range(0, n, stride):
        squares += (x[m, i] - centre) ** 2
    sd = math.sqrt(squares / n_sampled)
    if not (sd > 0 and math.isfinite(sd)):
        places[:] = 0
        return
    scale = BINS / (6 * sd)
    low = centre - 3 * sd
    for i in range(n):
        places[i] = np.uint8(min(max((x[m, i] - low) * scale, 0.0), last))


def _count(places: Array, parts: Array, counts: Array) -> None:
    """Counts of every bin, in four parts, because neighbours are often copies of one particle, and
    an increment waits for the previous one."""
    parts[:] = 0
    stop = len(places) // 4 * 4
    for i in range(0, stop, 4):
        parts[0, places[i]] += 1
        parts[1, places[i + 1]] += 1
        parts[2, places[i + 2]] += 1
        parts[3, places[i + 3]] += 1
    for i in range(stop, len(places)):
        parts[0, places[i]] += 1
    for b in range(len(counts)):
        counts[b] = parts[0, b] + parts[1, b] + parts[2, b] + parts[3, b]


@compiled()
def _order_statistics(x: Array, ranks: Array, found: Array) -> None:
    n = x.shape[1]
    many = len(ranks)
    places = np.empty(n, np.uint8)
    near_ranks = np.empty(many, np.int64)
    parts = np.empty((4, 256), np.int64)  # range of a position
    counts = np.empty(256, np.int64)
    near = np.empty(n + 1, x.dtype)
    for m in range(len(x)):
        _bins(x, m, places)
        _count(places, parts, counts)
        below = 0
        n_near = 0
        r = 0
        for b in range(len(counts)):
            first = r
            count = counts[b]
            while r < many and ranks[r] < below + count:
                near_ranks[r] = ranks[r] - below + n_near
                r += 1
            below += count
            counts[b] = r > first  # from here on: True if the bin contains a rank
            n_near += count * counts[b]
        n_near = 0
        for i in range(n):  # branch-free
            near[n_near] = x[m, i]
            n_near += counts[places[i]]
        first = 0
        for r in range(many):
            _select(near, first, n_near - 1, near_ranks[r])
            first = near_ranks[r]
            found[m, r] = near[first]


def order_statistics(values: Array, ranks: list[int]) -> Array:
    """The values [M, N] of the given ranks, from 0 and ascending, of every row; [M, ranks].

    Values are counted in bins, and the ranks are selected within their bins: two passes without
    sorting, two to four times faster than a sort.  Values must not be NaN; infinite values are in
    the first or the last bin."""
    out = np.empty((len(values), len(ranks)), values.dtype)
    _order_statistics(values, np.array(ranks), out)
    return out
