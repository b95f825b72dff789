"""Bounds on the probability of a binomial count."""

from __future__ import annotations

from typing import Any

import numpy as np

Counts = np.ndarray[Any, np.dtype[Any]]


def lower_bound(k: Counts, n: Counts | int, error: float) -> Counts:
    """One-sided Clopper–Pearson lower bound: p̲ with P(K ≥ k | p̲) = error.

    The bound exceeds the true probability with probability at most ``error``.

    Args:
        k: successes, 0 to n.
        n: trials.
        error: one minus the confidence level, in (0, 1).

    Source: Clopper & Pearson (1934).
    """
    from scipy import special

    return np.where(k == 0, 0.0, special.betaincinv(np.maximum(k, 1), n - k + 1, error))


def upper_bound(k: Counts, n: Counts | int, error: float) -> Counts:
    """One-sided upper bound p̄ with P(K ≤ k | p̄) = error; arguments as in ``lower_bound``."""
    return 1 - lower_bound(n - k, n, error)
